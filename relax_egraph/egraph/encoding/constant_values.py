"""The values of classes that depend on constants only, computed by the numpy references."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy.typing as npt

from relax_egraph.egraph.node import LEAF, SCALAR, TUPLE_GET, Child, mapped
from relax_egraph.egraph.view import ClassId, ENode, View
from relax_egraph.ir.apply import apply_to_constants
from relax_egraph.ir.dtypes import scalar
from relax_egraph.ir.expr import Constant, PrimValue
from relax_egraph.ir.matching import Value
from relax_egraph.ir.operators import find, named
from relax_egraph.ir.reference import reference_of
from relax_egraph.ir.struct_info import ShapeStructInfo

Array: TypeAlias = npt.NDArray[Any]

_MOVES = frozenset({"permute_dims", "concat", "reshape", "broadcast_to", TUPLE_GET})
"""Operators without arithmetic: the cheapest to compute."""


class ConstantValues:
    """The values of the constant classes of a view, each computed by its cheapest node."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._ways: dict[ClassId, tuple[int, ENode]] = {}
        constant = {c for c, e in view.classes.items() if e.is_const or e.sort == "tuple"}
        changed = True
        while changed:
            changed = False
            for c in constant:
                for cost, node in self._known(view.classes[c].nodes):
                    if c not in self._ways or cost < self._ways[c][0]:
                        self._ways[c] = cost, node
                        changed = True

    def made_by(self, c: ClassId) -> ENode | None:
        """The cheapest node that computes `c`; ``None`` if there is none."""
        return self._ways[c][1] if c in self._ways else None

    def of(self, c: ClassId) -> Any:
        """The value of `c`: an array, or several; a node in `made_by` must exist."""
        _, node = self._ways[c]
        match node.op:
            case "leaf":
                leaf = self._view.leaves[node.key]
                assert isinstance(leaf, Constant)
                return leaf.data
            case "scalar":
                return scalar(node.scalar, node.dtype)
            case "tuple_get":
                ((_, index),) = node.attrs
                assert isinstance(index, int)
                return self.of(node.operands[0])[index]
            case op:
                operands = [*map(self._operand, node.children)]
                return apply_to_constants(named(op), operands, dict(node.attrs))

    def _known(self, nodes: tuple[ENode, ...]) -> Iterator[tuple[int, ENode]]:
        """The nodes whose operands are known, each with the cost of its whole term."""
        for node in nodes:
            if not all(c in self._ways for c in node.operands) or not self._is_computed(node):
                continue
            own = 1 if node.op in _MOVES else 100
            yield own + sum(self._ways[c][0] for c in node.operands), node

    def _is_computed(self, node: ENode) -> bool:
        if node.op == LEAF:
            return isinstance(self._view.leaves[node.key], Constant)
        if node.op in (SCALAR, TUPLE_GET):
            return True
        op = find(node.op)
        if op is None or node.op == "check_indices":  # which fails when it runs
            return False
        return reference_of(op) is not None and op.pure and all(map(_is_static, node.children))

    def _operand(self, child: Child[ClassId]) -> Value:
        match mapped(child, self.of):
            case ShapeStructInfo(values=values) | PrimValue(value=values):
                return values
            case values:
                return values


def _is_static(child: Child[ClassId]) -> bool:
    match child:
        case ShapeStructInfo(values=values):
            return values is not None and all(isinstance(d, int) for d in values)
        case PrimValue(value=value):
            return isinstance(value, int | float)
        case _:
            return True
