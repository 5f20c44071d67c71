"""`VirtualMachine`: an executable, ready to be called."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, get_args

from relax_egraph.errors import RunError
from relax_egraph.vm.arguments import arrange, convert
from relax_egraph.vm.builtins import BUILTINS, Builtin, Packed
from relax_egraph.vm.executable import Executable
from relax_egraph.vm.interpreter import Interpreter
from relax_egraph.vm.native.engine import NativeEngine
from relax_egraph.vm.native.program import Surroundings
from relax_egraph.vm.pool import StoragePool
from relax_egraph.vm.registry import registered
from relax_egraph.vm.storage import Bytes

MAX_DEPTH = 10_000
"""Calls of functions within calls at most, unless the machine is told otherwise."""

Engine: TypeAlias = Literal["auto", "native", "interpreter"]


class VirtualMachine:
    """Runs an executable: ``vm["main"](x, w)``, ``vm["main"](x, w=w)``.

    Arguments are numpy arrays or whatever has ``__dlpack__``; arrays that are not contiguous
    are copied, a dtype is never converted.  Results are numpy arrays, tuples of them, shapes
    (tuples of ints).

    A name that the code calls is looked for in `packed`, among the kernels of the executable,
    among the functions that were registered, among the builtins; `RunError` lists those that
    are nowhere.  The machine may be used from several threads, and after an exception.

    The `engine` ``"interpreter"`` runs bytecode one instruction after the other.  ``"native"`` runs
    each function as one call of machine code; `RunError` says which have no such form, because
    they call packed functions, branch or recurse.  ``"auto"`` is native where it can be.  Both
    give the same results and the same errors.

    Kernels run on `num_threads` threads, the caller's among them, by default on as many as
    ``RELAX_EGRAPH_NUM_THREADS`` says or else the process may use; on one where the system is not
    Linux.  Results do not depend on the number.
    """

    def __init__(
        self,
        executable: Executable,
        packed: Mapping[str, Packed] | None = None,
        *,
        engine: Engine = "auto",
        num_threads: int | None = None,
        max_depth: int = MAX_DEPTH,
    ) -> None:
        if engine not in get_args(Engine):
            raise ValueError(f"engine is {engine!r}, needs one of {', '.join(get_args(Engine))}")
        self._executable = executable
        self._pool = StoragePool()
        kernels = executable.linker(executable, num_threads) if executable.linker else {}
        found = _resolve(executable, packed or {}, kernels)
        self._interpreter = Interpreter(executable, found, self, max_depth)
        self._native: NativeEngine | None = None
        if engine != "interpreter" and executable.driver is not None:
            around = Surroundings(kernels, executable.constants, self._pool.take)
            self._native = NativeEngine(
                executable, executable.driver, self._interpreter, around, found, max_depth
            )
        if engine == "native":
            self._require_native()
        self._entries: dict[str, Callable[..., Any]] = {}

    @property
    def executable(self) -> Executable:
        """What this machine runs."""
        return self._executable

    def __contains__(self, name: object) -> bool:
        return name in self._interpreter.programs

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name not in self._entries:
            self._entries[name] = self._entry(name)
        return self._entries[name]

    def allocate(self, size: int) -> Bytes:
        """Storage of at least `size` bytes, on a 64-byte line."""
        return self._pool.take(size)

    def _entry(self, name: str) -> Callable[..., Any]:
        programs, run = self._interpreter.programs, self._interpreter.run
        program = programs.get(name)
        if program is None or program.function.private:
            names = [n for n, p in programs.items() if not p.function.private]
            raise KeyError(f"no function {name!r} to call; there are: {', '.join(names) or 'none'}")

        def function(*args: Any, **named: Any) -> Any:
            return run(program, arrange(program.function, args, named))

        if self._native is None or name not in self._native.programs:
            return function
        return self._native.entry(name, function)

    def _require_native(self) -> None:
        """Raise `RunError` unless every function that can be called is native."""
        if self._native is None:
            raise RunError("no native engine: the executable was not built or loaded for one")
        refusals = self._native.refusals
        reasons = [
            f"function {f.name!r}: {refusals[f.name]}"
            for f in self._executable.functions
            if f.name in refusals and not f.private
        ]
        if reasons:
            raise RunError(f"no native form: {'; '.join(reasons)}")


def _resolve(
    executable: Executable,
    packed: Mapping[str, Packed],
    kernels: Mapping[str, Callable[..., Any]],
) -> dict[str, Packed | Builtin]:
    tables = (_converting(packed.get), kernels.get, _converting(registered), BUILTINS.get)
    found: dict[str, Packed | Builtin] = {}
    missing: list[str] = []
    for name in executable.packed_names:
        chosen = next((f for f in (table(name) for table in tables) if f is not None), None)
        if chosen is None:
            missing.append(f"kernel {name}" if name in executable.kernel_names else name)
        else:
            found[name] = chosen
    if missing:
        raise RunError(
            f"no packed function {', '.join(missing)}: give it in packed=, "
            "or register it with register_func"
        )
    return found


def _converting(table: Callable[[str], Packed | None]) -> Callable[[str], Packed | None]:
    """`table` of functions that others wrote: their results become what kernels take."""

    def look_up(name: str) -> Packed | None:
        function = table(name)
        if function is None:
            return None
        return lambda *args: convert(f"the result of {name!r}", function(*args))

    return look_up
