"""Closures, and calls whose arguments are determined at run time."""

from typing import Any

from relax_egraph.errors import RunError
from relax_egraph.vm.arguments import convert
from relax_egraph.vm.builtins.builtin import Builtin, of_values, wrong
from relax_egraph.vm.closure import closure_of
from relax_egraph.vm.matching import describe, is_shape


def make_closure(function: Any, *captured: Any) -> Any:
    """A closure: `function` with its last arguments bound to `captured`."""
    if not callable(function):
        raise wrong("make_closure", "function", function, "a function")
    return closure_of(function, captured)


def invoke_closure(closure: Any, *args: Any) -> Any:
    """The result of a closure, converted for kernels."""
    if not callable(closure):
        raise RunError(f"cannot call {describe(closure)}")
    return convert("the result of a closure", closure(*args))


def call_tir_dyn(kernel: Any, *operands: Any) -> None:
    """Call `kernel` with tensors, and the extents of a shape, which is the last operand."""
    if not callable(kernel):
        raise wrong("call_tir_dyn", "kernel", kernel, "a kernel")
    if not operands or not is_shape(operands[-1]):
        raise wrong("call_tir_dyn", "operands", operands, "tensors, and a shape as the last")
    *tensors, extents = operands
    kernel(*tensors, *extents)


CALLS: tuple[Builtin, ...] = (
    of_values(make_closure),
    of_values(invoke_closure),
    of_values(call_tir_dyn),
)
