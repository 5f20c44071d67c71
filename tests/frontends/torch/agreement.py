"""Functions of torch, exported and built, compared with what torch computes."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

import relax_egraph as rx


class Called(torch.nn.Module):
    """A function as a module, which torch exports."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *operands: Any) -> Any:
        return self._function(*operands)


def assert_agrees(
    function: Callable[..., Any],
    *operands: Any,
    relative: float = 1e-6,
    absolute: float = 1e-6,
    dynamic: Mapping[int, Any] | None = None,
    late: tuple[Any, ...] | None = None,
) -> None:
    """Raise unless `function` has the results of torch; with the dtypes and signs of zero.

    With sizes that are `dynamic` axes of each operand, it is compared for `late` operands too.
    """
    program = Called(function)
    dynamic_shapes = None if dynamic is None else (tuple(dynamic for _ in operands),)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of itself
        exported = torch.export.export(program, operands, dynamic_shapes=dynamic_shapes)
        module = rx.from_torch(exported)
    machine = rx.VirtualMachine(rx.build(rx.optimize(module)))
    for case in (operands, *(() if late is None else (late,))):
        results = machine["main"](*map(_passed, case))
        own = results if isinstance(results, tuple) else (results,)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            expected = [_array(leaf) for leaf in pytree.tree_leaves(program(*case))]
        for result, want in zip(own, expected, strict=True):
            got = np.asarray(result)
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(got, want, rtol=relative, atol=absolute)
            zeros = (got == 0) & (want == 0)
            np.testing.assert_array_equal(np.copysign(1, got)[zeros], np.copysign(1, want)[zeros])


def _passed(operand: Any) -> Any:
    is_complex = isinstance(operand, torch.Tensor) and operand.is_complex()
    return torch.view_as_real(operand) if is_complex else operand


def _array(value: Any) -> Any:
    """A tensor as an array; of complex numbers, with the parts along a last axis."""
    whole = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
    return whole.resolve_neg().numpy()
