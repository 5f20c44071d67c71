"""Results of calls of functions below the graph, by the functions registered for the machine.

A loop function is known by the module alone.  To check a rule that calls one, a packed function of
its name is registered, which writes into its last operand as the loop function does.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from relax_egraph.egraph.node import C, Node
from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.struct_info import TensorStructInfo
from relax_egraph.verify.values.inputs import Array
from relax_egraph.vm.registry import registered


def called(
    node: Node[C], operands: Sequence[Array], extents: Mapping[str, int], dtype: str | None = None
) -> Array:
    """The result of the call `node`, in `dtype` instead of its own; raises `RunError`."""
    info: TensorStructInfo = node.call_info
    function = registered(node.callee)
    if function is None:
        raise RunError(f"no meaning is registered for {node.callee}")
    shape = tuple(dims.evaluate(d, extents) for d in info.dims or ())
    copies = [np.array(x, order="C") for x in operands]
    out = np.zeros(shape, dtype or info.dtype)
    try:
        with np.errstate(all="ignore"):
            result = _run(node.op, function, copies, out)
    except Exception as problem:
        what = f"{type(problem).__name__}: {problem}"
        raise RunError(f"{node.callee} fails: {what}") from problem
    if result.shape != shape or result.dtype != out.dtype:
        made = f"{result.dtype}{list(result.shape)}"
        raise RunError(f"{node.callee} returns {made}, needs {out.dtype}{list(shape)}")
    return result


def in_float64(
    node: Node[C], operands: Sequence[Array], extents: Mapping[str, int], value: Array
) -> Array:
    """The same call in float64, if the function takes it; else its result `value`."""
    dtype = node.call_info.dtype
    if dtype is None or not is_float(dtype):
        return value
    try:
        return called(node, operands, extents, "float64")
    except RunError:
        return value.astype(np.float64)


def _run(op: str, function: Callable[..., Any], operands: list[Array], out: Array) -> Array:
    if op == "call_pure_packed":
        return np.asarray(function(*operands))
    function(*operands, out)
    return out
