"""Struct info of each class of an e-graph, from facts or operators' struct-info rules."""

from collections.abc import Mapping

from relax_egraph.egraph.node import CALLS, TUPLE_GET, Node
from relax_egraph.egraph.readback.tables import Key, Tables
from relax_egraph.egraph.rulebook.vocabulary import operators
from relax_egraph.errors import IllTyped
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.op import Op
from relax_egraph.ir.operators import named
from relax_egraph.ir.struct_info import (
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.ir.symbol_ranges import memoised

_UNKNOWN = TensorStructInfo()


class Infos:
    """Struct info by class; `known` has struct info in addition to facts."""

    def __init__(self, tables: Tables, known: Mapping[Key, TensorStructInfo]) -> None:
        self._tables, self._known = tables, known
        self._cache: dict[Key, StructInfo] = {}

    def of(self, key: Key) -> StructInfo:
        """The struct info of class `key`; for a kernel class, of the tensor that it would store."""
        if key not in self._cache:
            self._cache[key] = _UNKNOWN  # ends the recursion on a cycle
            self._cache[key] = self._info(key)
        return self._cache[key]

    def derived(self, node: Node[Key]) -> StructInfo | None:
        """The struct info of `node` by its operator's rule; raises `IllTyped` if it refuses."""
        if node.op == TUPLE_GET:
            ((_, index),) = node.attrs
            whole = self.of(node.operands[0])
            parts = whole.fields if isinstance(whole, TupleStructInfo) else ()
            return parts[index] if isinstance(index, int) and index < len(parts) else None
        if node.op in CALLS:
            return node.call_info
        if node.op not in operators():
            return None
        return inferred(named(node.op), node.infos(self.of), node.attrs)

    def _info(self, key: Key) -> StructInfo:
        sort, value = key
        if sort == "Kernel" and value in self._tables.memory:
            return self.of(Key("Tensor", self._tables.memory[value]))
        if sort == "Tensor":
            shape, dtype = self._tables.shape(value), self._tables.dtype(value)
            known = self._known.get(key, _UNKNOWN)
            if shape is not None:
                return tensor(shape, dtype or known.dtype)
            if key in self._known:
                return TensorStructInfo(known.shape, dtype or known.dtype, known.ndim)
            if dtype is not None:
                rank = self._tables.rank(value)
                return tensor(None, dtype, -1 if rank is None else rank)
        for node in self._tables.nodes_at(key):
            try:
                info = self.derived(node)
            except IllTyped:
                continue
            if info is not None:
                return info
        return _UNKNOWN


@memoised
def inferred(
    op: Op, operands: tuple[StructInfo | None, ...], attrs: tuple[tuple[str, Attr], ...]
) -> StructInfo:
    """The struct info of the result of `op`, under the current assumptions."""
    return op.rule(*operands, **dict(attrs))
