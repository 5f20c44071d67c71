"""Checks of struct info (see `vm.matching`), of indices, and of elements."""

from typing import Any

import numpy as np

from relax_egraph.errors import RunError
from relax_egraph.ir.message import no_element, outside
from relax_egraph.vm import matching
from relax_egraph.vm.builtins.builtin import Builtin, Packed, bound, wrong


def check_indices(operator: str, from_end: int, *axes: int) -> Packed:
    """Return `indices` if `inside`, which a kernel computed, states they are valid; else fail.

    Negative ones are valid if they count `from_end`: 1, else 0.
    """

    def check(indices: Any, inside: Any, shape: Any) -> Any:
        for name, value in (("indices", indices), ("inside", inside)):
            if not isinstance(value, np.ndarray):
                raise wrong("check_indices", name, value, "a tensor")
        if not matching.is_shape(shape) or not all(0 <= a < len(shape) for a in axes):
            raise wrong("check_indices", "shape", shape, f"a shape with axes {list(axes)}")
        if not inside and (problem := outside(indices, shape, axes, operator, bool(from_end))):
            raise RunError(problem)
        return indices

    return check


def check_elements(operator: str, *axes: int) -> Packed:
    """Return the tensor `x` if none of `axes` (without them: of all axes) is empty; else fail."""

    def check(x: Any) -> Any:
        if not isinstance(x, np.ndarray) or not all(-x.ndim <= a < x.ndim for a in axes):
            needs = f"a tensor with axes {list(axes)}" if axes else "a tensor"
            raise wrong("check_elements", "x", x, needs)
        if 0 in ([x.shape[a] for a in axes] or x.shape):
            message = f"{operator} of {matching.describe(x)}: {no_element(axes or None)}"
            raise RunError(message)
        return x

    return check


CHECKS: tuple[Builtin, ...] = (
    bound(matching.match_shape, "value", "heap"),
    bound(matching.match_operand, "value", "heap"),
    bound(matching.match_prim, "value", "heap"),
    bound(matching.check_tensor_info, "value"),
    bound(matching.check_shape_info, "value"),
    bound(matching.check_tuple_info, "value"),
    bound(matching.check_prim_info, "value"),
    bound(matching.check_string_info, "value"),
    bound(matching.check_func_info, "value"),
    bound(matching.check_upper_bound, "value"),
    bound(check_indices, "indices", "inside", "shape"),
    bound(check_elements, "x"),
)
