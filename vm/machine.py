"""`VirtualMachine`: runs an executable."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from relax_egraph.base.parameters import (
    ANYTHING,
    COUNT,
    NAME,
    NOT_NEGATIVE,
    SIZE,
    THREADS,
    Kind,
    check,
    choice,
    function,
    instance,
    integer,
    mapping,
    optional,
    takes,
)
from relax_egraph.errors import RunError
from relax_egraph.vm.arguments import convert
from relax_egraph.vm.builtins import Packed, invoke_closure
from relax_egraph.vm.dlpack import exported
from relax_egraph.vm.entries import Entries
from relax_egraph.vm.executable import Executable
from relax_egraph.vm.instrument import Instrument, watched_by
from relax_egraph.vm.interpreter import Interpreter
from relax_egraph.vm.native.engine import NativeEngine
from relax_egraph.vm.native.program import Surroundings
from relax_egraph.vm.pool import StoragePool
from relax_egraph.vm.resolve import resolve
from relax_egraph.vm.stateful import State
from relax_egraph.vm.storage import Bytes

if TYPE_CHECKING:  # what only runs a model does without
    from relax_egraph.vm.call_report import CallReport, Roofline
    from relax_egraph.vm.timing import Timing

MAX_DEPTH = 10_000
"""The default limit of nested calls of functions."""

Engine: TypeAlias = Literal["auto", "native", "interpreter"]

_PROFILING = {
    "repeat": COUNT,
    "machine": optional(
        Kind(
            "the Profile of a machine, such as calibrated() returns",
            lambda value: callable(getattr(value, "seconds", None)),
        )
    ),
}


class VirtualMachine:
    """Runs an executable: ``vm["main"](x, w)``, ``vm["main"](x, w=w)``.

    Arguments are numpy arrays or objects with ``__dlpack__``; arrays that are not contiguous are
    copied, dtypes are never converted.  Results are numpy arrays, tuples of them, or shapes
    (tuples of ints).

    A name that the code calls is looked up in `packed`, then among the kernels of the executable,
    the registered functions, and the builtins; `RunError` lists the names that are missing.  The
    machine may be used from several threads, and after an exception.

    The `engine` ``"interpreter"`` runs bytecode one instruction after the other.  ``"native"`` runs
    each function as one call of machine code; `RunError` lists functions without a native form,
    because they call packed functions or are recursive other than by tail calls.  ``"auto"`` is
    native where possible.  All engines have the same results and the same errors.

    Kernels run on `num_threads` threads, including the caller's.  The default is
    ``RELAX_EGRAPH_NUM_THREADS``, or else the number of processors of the process; outside of
    Linux, it is one.  Results do not depend on the number.
    """

    @takes(
        executable=instance("an Executable, which build and load return", Executable),
        packed=optional(mapping("packed functions by name", function("a function"))),
        engine=choice(*get_args(Engine)),
        num_threads=optional(THREADS),
        max_depth=integer("a number of calls, 0 or more", 0),
    )
    def __init__(
        self,
        executable: Executable,
        packed: Mapping[str, Packed] | None = None,
        *,
        engine: Engine = "auto",
        num_threads: int | None = None,
        max_depth: int = MAX_DEPTH,
    ) -> None:
        self._executable = executable
        self._pool = StoragePool()
        kernels = executable.linker(executable, num_threads) if executable.linker else {}
        packed_by_name = resolve(executable, packed or {}, kernels)
        self.interpreting = partial(Interpreter, executable, packed_by_name, self, max_depth)
        """Creates another interpreter for the machine, independent of the others."""
        self._interpreter = self.interpreting()
        self._native: NativeEngine | None = None
        if engine != "interpreter" and executable.driver is not None:
            around = Surroundings(kernels, executable.constants, self._pool.take)
            self._native = NativeEngine(
                executable,
                executable.driver,
                self._interpreter,
                around,
                packed_by_name,
                max_depth,
            )
        if engine == "native":
            self._require_native()
        self._entries = Entries(self._interpreter, self._native, _has_bfloat16(executable))
        self._state = State()

    @property
    def executable(self) -> Executable:
        """The executable that this machine runs."""
        return self._executable

    def __repr__(self) -> str:
        engine = "interpreter" if self._native is None else "native where it can be"
        return f"<VirtualMachine of {self._executable.signatures}; engine: {engine}>"

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self._entries[name]

    def allocate(self, size: int) -> Bytes:
        """Storage of at least `size` bytes, aligned to 64 bytes."""
        SIZE.check("size", size)
        return self._pool.take(size)

    # --- calls in steps, closures, saved calls ---------------------------------------------

    def set_input(self, name: str, /, *args: Any, **named: Any) -> None:
        """Set the arguments of the function `name`, for `invoke_stateful` in this thread.

        They are converted once; an array that needs no copy may be written between calls.
        """
        self._state.inputs[name] = self._entries.bind(name, args, named)

    def invoke_stateful(self, name: str) -> None:
        """Call the function `name` with the arguments from `set_input` in this thread."""
        function, arguments = self._state.input(name)
        self._state.outputs[name] = self[function](*arguments)

    def get_outputs(self, name: str) -> Any:
        """The result of the last `invoke_stateful` of `name` in this thread."""
        return self._state.output(name)

    def save_function(self, name: str, saved: str, /, *args: Any, **named: Any) -> None:
        """Make ``vm[saved]()`` call `name` with these arguments, which are converted once.

        Raises ``ValueError`` if the executable has a function `saved`; another saved call is
        replaced.
        """
        NAME.check("saved", saved)
        self._entries.save(saved, self._entries.bind(name, args, named))

    @takes(closure=function("a closure, which a function of a machine returned"), args=ANYTHING)
    def invoke_closure(self, closure: Any, *args: Any) -> Any:
        """Call a closure that a function of a machine returned."""
        converted = (convert("an argument of the closure", a) for a in args)
        return exported(invoke_closure(closure, *converted))

    # --- instruments, timing and profiles --------------------------------------------------

    @takes(instrument=optional(function("a function of a CallEvent")))
    def set_instrument(self, instrument: Instrument | None) -> None:
        """Call `instrument` around each call of a packed function; ``None`` removes it.

        It affects functions that are looked up afterwards, such as ``vm["main"]``, not callables
        from before.  Functions are interpreted while there is an instrument.
        """
        watched = None if instrument is None else self.interpreting(watched_by(instrument))
        self._entries.watch(watched)

    @takes(name=NAME, number=COUNT, repeat=COUNT, min_repeat_ms=NOT_NEGATIVE)
    def time_evaluator(
        self, name: str, *, number: int = 10, repeat: int = 1, min_repeat_ms: float = 0.0
    ) -> "Callable[..., Timing]":
        """A function that times calls of the function `name` with its arguments; see `measure`."""
        from relax_egraph.vm.timing import measure

        def evaluate(*args: Any, **named: Any) -> "Timing":
            function, arguments = self._entries.bind(name, args, named)
            return measure(partial(self[function], *arguments), number, repeat, min_repeat_ms)

        return evaluate

    def profile(
        self,
        name: str,
        /,
        *args: Any,
        repeat: int = 1,
        machine: "Roofline | None" = None,
        **named: Any,
    ) -> "CallReport":
        """Run the function `name` in the interpreter, and time its calls of packed functions.

        With `repeat`, the time of a call is the least in that many runs; all runs but the last use
        copies of the arrays, so that results are written once.  `machine` bounds the time of each
        call from below.  A parameter with one of these names must be passed by position.
        """
        from relax_egraph.vm.profile import profile

        check(_PROFILING, {"repeat": repeat, "machine": machine})
        function, arguments = self._entries.bind(name, args, named)

        return profile(self.interpreting, function, arguments, self._executable, repeat, machine)

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


def _has_bfloat16(executable: Executable) -> bool:
    """Whether a parameter, an allocation or a constant may be of bfloat16."""
    texts = [info for function in executable.functions for info in function.param_info]
    texts += [
        c if isinstance(c, str) else c.dtype.name
        for c in executable.constants
        if isinstance(c, str | np.ndarray)
    ]
    return any("bfloat16" in text for text in texts)
