"""The callables of a machine: its functions for callers in Python."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import is_
from threading import RLock
from typing import Any, NamedTuple

import numpy as np

from relax_egraph.base.forks import free_in_forks
from relax_egraph.base.parameters import NAME
from relax_egraph.errors import UnknownFunction
from relax_egraph.vm.arguments import arrange, in_order
from relax_egraph.vm.decoding import Program
from relax_egraph.vm.dlpack import Result, exported
from relax_egraph.vm.interpreter import Interpreter
from relax_egraph.vm.native.engine import NativeEngine


class BoundCall(NamedTuple):
    """The name of a function and its converted arguments."""

    function: str
    arguments: tuple[Any, ...]


class Entries:
    """Callables by name: native functions where `native` has them, interpreted ones, saved calls.

    Each is created once, at first use.  With `exports`, results may be of bfloat16: see `exported`.
    """

    def __init__(
        self, interpreter: Interpreter, native: NativeEngine | None, exports: bool
    ) -> None:
        self._interpreter = interpreter
        self._native = native
        self._exports = exports
        self._watched: Interpreter | None = None
        self._saved: dict[str, BoundCall] = {}
        self._made: dict[str, Callable[..., Any]] = {}
        self._making = free_in_forks(RLock())  # a finalizer may request an entry meanwhile

    def __contains__(self, name: object) -> bool:
        known = isinstance(name, str)
        return known and (name in self._interpreter.programs or name in self._saved)

    def __getitem__(self, name: Any) -> Callable[..., Any]:
        entry = self._made.get(name) if isinstance(name, str) else None
        if entry is None:
            NAME.check("name", name)
            with self._making:
                entry = self._made.get(name) or self._made.setdefault(name, self._make(name))
        return entry

    def bind(self, name: str, args: Sequence[Any], named: Mapping[str, Any]) -> BoundCall:
        """The function and converted arguments of a call; for a saved call, the saved ones."""
        NAME.check("name", name)
        if name in self._saved and not args and not named:
            return self._saved[name]
        function = self._program(self._interpreter, name).function
        return BoundCall(name, tuple(arrange(function, args, named)))

    def save(self, name: str, call: BoundCall) -> None:
        """Make `name` the saved call `call`, which may replace another saved call.

        Raises ``ValueError`` if a function has that name.
        """
        if name in self._interpreter.programs:
            raise ValueError(f"the executable has a function {name!r}: save it by another name")
        with self._making:
            self._saved[name] = call
            self._made.pop(name, None)

    def watch(self, watched: Interpreter | None) -> None:
        """Run functions that are requested from now on by `watched`; ``None`` ends that."""
        with self._making:
            self._watched = watched
            self._made.clear()

    def _program(self, interpreter: Interpreter, name: str) -> Program:
        programs = interpreter.programs
        program = programs.get(name)
        if program is None or program.function.private:
            names = [*(n for n, p in programs.items() if not p.function.private), *self._saved]
            raise UnknownFunction.among(name, "to call", names)
        return program

    def _make(self, name: str) -> Callable[..., Any]:
        if name in self._saved:
            function_name, arguments = self._saved[name]
            return partial(self._make(function_name), *arguments)
        entry = self._entry(name)
        return _exporting(entry) if self._exports else entry

    def _entry(self, name: str) -> Callable[..., Any]:
        interpreter = self._watched or self._interpreter
        program = self._program(interpreter, name)
        function, run = program.function, interpreter.run

        def interpreted(*args: Any, **named: Any) -> Any:
            return run(program, arrange(function, args, named))

        if self._watched or self._native is None or name not in self._native.programs:
            return interpreted

        def unusual(*args: Any, **named: Any) -> Any:
            """Calls that the native program leaves: handle names and conversions, then retry."""
            if named:
                return native(*in_order(function, args, named))
            converted = arrange(function, args, named)
            if all(map(is_, converted, args)):
                return run(program, converted)
            return native(*converted)

        native = self._native.entry(name, unusual)
        return native


def _exporting(call: Callable[..., Any]) -> Callable[..., Any]:
    def export(*args: Any, **named: Any) -> Any:
        plain = (a.view(np.ndarray) if type(a) is Result else a for a in args)
        return exported(call(*plain, **named))

    return export
