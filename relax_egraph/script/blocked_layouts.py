"""Reads operators on blocked layouts, such as ``NCHW4c``: plain ones between rearrangements.

In ``NCHW4c`` the channels are in blocks: ``C`` counts blocks, ``4c`` is the place within one.
"""

import ast
import re
from collections.abc import Callable

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, ShapeExpr
from relax_egraph.ir.op import OPS, Op
from relax_egraph.ir.struct_info import known_extents
from relax_egraph.script.operators import Operators
from relax_egraph.script.scope import Scope

_AXES = re.compile(r"(\d*)([A-Za-z])")
_LAYOUTS = {"data_layout": 0, "layout": 0, "kernel_layout": 1}
"""The operand of each attribute that is a layout."""

BLOCKABLE = tuple(name for name, op in OPS.items() if any(a.name in _LAYOUTS for a in op.attrs))
"""The operators with layouts."""


class BlockedLayouts:
    """Reads calls of them in `scope`.  Raises `ScriptError`."""

    def __init__(
        self, scope: Scope, operators: Operators, leaf: Callable[[ast.expr], Expr]
    ) -> None:
        self._scope = scope
        self._source = scope.source
        self._operators = operators
        self._leaf = leaf

    def call(self, node: ast.Call, op: Op) -> Expr:
        """The call of `op`, in whatever layouts."""
        slots = dict(zip(op.slots, node.args, strict=False))
        slots |= {k.arg: k.value for k in node.keywords if k.arg}
        written = {
            name: value.value
            for name, value in slots.items()
            if name.endswith("layout")
            and isinstance(value, ast.Constant)
            and isinstance(value.value, str)
        }
        if not any(char.isdigit() for layout in written.values() for char in layout):
            return self._operators.call(node, op)
        plain: dict[str, ast.expr] = {
            name: ast.Constant(_plain(layout)) for name, layout in written.items()
        }
        for name, place in _LAYOUTS.items():
            if name in written:
                operand = op.operands[place].name
                if operand not in slots:
                    return self._operators.call(node, op)
                value = self._unblocked(node, self._leaf(slots[operand]), written[name])
                plain[operand] = ast.Name(self._scope.emit(value).name, ast.Load())
        keywords = [ast.keyword(name, value) for name, value in (slots | plain).items()]
        for keyword in keywords:
            ast.copy_location(keyword.value, node)
        result = self._operators.call(
            ast.copy_location(ast.Call(node.func, [], keywords), node), op
        )
        out = written.get("out_layout") or written.get("data_layout") or written["layout"]
        return self._blocked(node, result, out)

    def _unblocked(self, node: ast.Call, value: Expr, layout: str) -> Expr:
        extents, axes = known_extents(value.struct_info), _axes(layout)
        if len(extents) != len(axes):
            message = (
                f"the layout {layout} has {len(axes)} axes, the operand is {value.struct_info}"
            )
            raise self._source.error(node, message)
        letters = [letter for letter, _ in axes]
        groups = [
            [k for k, other in enumerate(letters) if other.upper() == letter]
            for letter in _plain(layout)
        ]
        order = tuple(k for group in groups for k in group)
        shape = tuple(dims.product(extents[k] for k in group) for group in groups)
        return self._reshaped(node, self._permuted(node, value, order), shape)

    def _blocked(self, node: ast.Call, value: Expr, layout: str) -> Expr:
        axes, extents = _axes(layout), known_extents(value.struct_info)
        split: list[tuple[str, Dim]] = []
        for letter, extent in zip(_plain(layout), extents, strict=True):
            inner = [(a, f) for a, f in axes if a == letter.lower()]
            count = dims.product(f for _, f in inner)
            split += [(letter, dims.floordiv(extent, count)), *inner]
        letters = [letter for letter, _ in split]
        order = tuple(letters.index(letter) for letter, _ in axes)
        whole = self._reshaped(node, value, tuple(extent for _, extent in split))
        return self._permuted(node, whole, order)

    def _permuted(self, node: ast.Call, value: Expr, order: tuple[int, ...]) -> Expr:
        if order == tuple(range(len(order))):
            return value
        return self._operators.apply(
            node, OPS["permute_dims"], [self._scope.emit(value)], {"axes": order}
        )

    def _reshaped(self, node: ast.Call, value: Expr, shape: tuple[Dim, ...]) -> Expr:
        if shape == known_extents(value.struct_info):
            return value
        return self._operators.apply(
            node, OPS["reshape"], [self._scope.emit(value), ShapeExpr(shape)], {}
        )


def _axes(layout: str) -> list[tuple[str, int]]:
    return [(letter, int(factor or 1)) for factor, letter in _AXES.findall(layout)]


def _plain(layout: str) -> str:
    """``NCHW`` of ``NCHW4c``."""
    return "".join(letter for letter, _ in _axes(layout) if letter.isupper())
