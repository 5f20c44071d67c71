"""The native engine of one machine."""

from collections.abc import Callable, Mapping
from typing import Any

from relax_egraph.vm.builtins import BUILTINS, Builtin, Packed
from relax_egraph.vm.decoding import Code, gather
from relax_egraph.vm.executable import Executable
from relax_egraph.vm.interpreter import Interpreter, Segment
from relax_egraph.vm.native.builtins import NATIVE_BUILTINS
from relax_egraph.vm.native.closures import CLOSURE_BUILTINS
from relax_egraph.vm.native.program import Driver, NativeProgram, Surroundings
from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.native.segments import native_function, native_segments
from relax_egraph.vm.native.tracer import Callees


class NativeEngine:
    """Native programs for the functions of `interpreter` that have a native form.

    `programs` are the whole functions; `refusals` are the reasons why other functions have no
    native form: the interpreter runs parts of them as native segments.
    """

    def __init__(
        self,
        executable: Executable,
        driver: Driver,
        interpreter: Interpreter,
        surroundings: Surroundings,
        packed: Mapping[str, Packed | Builtin],
        max_depth: int,
    ) -> None:
        self.programs: dict[str, NativeProgram] = {}
        self.refusals: dict[str, str] = {}
        self._driver = driver
        self._interpreter = interpreter
        self._surroundings = surroundings
        callees = _callees(executable, driver, surroundings, packed)
        for function in executable.functions:
            try:
                self.programs[function.name] = native_function(callees, function, max_depth)
            except Refused as refused:
                self.refusals[function.name] = str(refused)
                self._fuse(callees, function.name, max_depth)

    def entry(self, name: str, fallback: Callable[..., Any]) -> Callable[..., Any]:
        """The callable of the function `name`, which has a program."""
        return self._driver.load(self.programs[name], self._surroundings, fallback)

    def _fuse(self, callees: Callees, name: str, max_depth: int) -> None:
        """Insert native segments into the code of a function."""
        program = self._interpreter.programs[name]
        for native in native_segments(callees, program.function, max_depth):
            segment = Segment(
                self._driver.load(native.program, self._surroundings, None),
                gather(native.inputs),
                native.outputs,
                native.end,
                program.code[native.start],
            )
            program.code[native.start] = (Code.SEGMENT, segment, None, None)


def _callees(
    executable: Executable,
    driver: Driver,
    surroundings: Surroundings,
    packed: Mapping[str, Packed | Builtin],
) -> Callees:
    """The kernels and builtins that native programs may call, by name."""
    types = {
        name: driver.kernel_type(kernel)
        for name, kernel in surroundings.kernels.items()
        if packed.get(name) is kernel
    }
    handlers = {**NATIVE_BUILTINS, **CLOSURE_BUILTINS}
    return Callees(
        executable,
        {name: type for name, type in types.items() if type is not None},
        {n: h for n, h in handlers.items() if packed.get(n) is BUILTINS[n]},
    )
