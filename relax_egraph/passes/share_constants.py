"""Shares equal constants of a module: constants with the same bits become one array."""

from collections import defaultdict
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relax_egraph.ir.expr import Constant, Expr, Function
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.passes.infra import module_pass

Array: TypeAlias = npt.NDArray[Any]

_PREFIX = 16
"""The elements at the start of an array that are its hash key."""


@module_pass(name="share_constants", opt_level=1)
def share_constants(module: IRModule) -> IRModule:
    """Replace constants of equal dtype, shape and bits by one array, across all functions.

    An executable stores each array once.  Functions that use the same weights, such as plans for
    several ranges of sizes, fold the same constants.
    """
    shared = _Shared()
    functions: dict[str, BaseFunc] = dict(module.functions)
    for name, function in module.relax_functions():
        changed = shared.visit_expr(function)
        assert isinstance(changed, Function)
        functions[name] = changed
    return replace(module, functions=functions)


class _Shared(ExprMutator):
    def __init__(self) -> None:
        super().__init__()
        self._first: dict[int, Array] = {}
        self._alike: dict[object, list[Array]] = defaultdict(list)

    def visit_constant(self, constant: Constant) -> Expr:
        data = constant.data
        if id(data) not in self._first:
            self._first[id(data)] = self._shared(data)
        first = self._first[id(data)]
        return constant if first is data else Constant(first)

    def _shared(self, data: Array) -> Array:
        alike = self._alike[data.dtype, data.shape, data.flat[:_PREFIX].tobytes()]
        for known in alike:
            if np.array_equal(_bits(known), _bits(data)):
                return known
        alike.append(data)
        return data


def _bits(data: Array) -> Array:
    return np.ascontiguousarray(data).reshape(-1).view(np.uint8)
