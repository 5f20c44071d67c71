"""Shape and dtype inference for new nodes, by the operators' own struct-info rules.

For the most common operators, generated rules (`rulebook.generate`) deduce shape and dtype within
the e-graph.  For all others the struct-info rule is evaluated between two iterations.  Either way
the definition of the operator is the only source.
"""

from collections.abc import Iterable, Iterator, Mapping

from relax_egraph.egraph.bindings import Value
from relax_egraph.egraph.encoding import literals
from relax_egraph.egraph.encoding.constructors import constructor_of
from relax_egraph.egraph.functions.shapes import KEEPS_SHAPE, SHAPE_FUNCTIONS
from relax_egraph.egraph.node import CALLS, LEAF, SCALAR, TUPLE_GET, Node
from relax_egraph.egraph.readback.tables import Key, Tables
from relax_egraph.egraph.rulebook.traits import Traits
from relax_egraph.egraph.rulebook.vocabulary import operators
from relax_egraph.egraph.saturation.conflict import unequal_shapes
from relax_egraph.egraph.saturation.infos import Infos
from relax_egraph.errors import IllTyped, SaturationError
from relax_egraph.ir import dims
from relax_egraph.ir.operators import by_operators
from relax_egraph.ir.struct_info import (
    Shape,
    StructInfo,
    TensorStructInfo,
)


@by_operators(64)
def asked() -> frozenset[str]:
    """The operators for which no rule deduces shape and dtype: their struct-info rules do."""
    names = {name for name, traits in operators().items() if not _is_deduced(traits)}
    return frozenset((*names, TUPLE_GET))


def _is_deduced(traits: Traits) -> bool:
    """Whether generated rules deduce shape and dtype of the operator's result."""
    shape = traits.op.elementwise or traits.shape or traits.order
    name = traits.op.name
    return bool(traits.dtype and (shape or name in KEEPS_SHAPE or name in SHAPE_FUNCTIONS))


def grown(sizes: Mapping[str, int], before: Mapping[str, int]) -> tuple[str, ...]:
    """The operators of `asked` with new nodes, by the sizes of tables now and `before`."""
    return tuple(n for n in sorted(asked()) if sizes.get(f"R.{n}", 0) > before.get(f"R.{n}", 0))


def claims(names: Iterable[str], tables: Tables) -> Iterator[str]:
    """Actions that claim unknown shapes and dtypes of the results of the operators `names`.

    The ruleset ``facts`` turns claims into facts.  Raises `SaturationError` if an operator refuses
    its operands.
    """
    values = _Values(tables)
    return (claim for name in names for claim in values.claims(name))


def ill_typed(tables: Tables) -> str | None:
    """The first type error of a node, as a sentence without its subject; ``None`` if none has one.

    Nodes of the operators of `asked` are checked already, when their claims are computed.
    """
    infos = Infos(tables, {})
    tensors = (pair for pair in tables.nodes.items() if pair[0].sort == "Tensor")
    for key, node in ((key, n) for key, nodes in tensors for n in nodes if n.op not in asked()):
        try:
            info = infos.derived(node)
        except IllTyped as problem:
            return f"makes an ill-typed value: {problem}"
        known = tables.shape(key.value)
        claimed = info.dims if isinstance(info, TensorStructInfo) else None
        if known is not None and claimed is not None and not _agree(known, claimed):
            return unequal_shapes(known, claimed)
    return None


class _Values:
    """The struct info of each class, and a term that names it."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._infos = Infos(tables, {})
        self._loaded = {
            key: f"({'TupleValue' if key.sort == 'Tuple' else 'Value'} {number})"
            for number, key in tables.loaded.items()
        }
        self._names: dict[Key, str | None] = {}

    def claims(self, op: str) -> Iterator[str]:
        """Actions that claim the unknown facts of the results of `op`."""
        for key, node in self._tables.nodes_of(f"R.{op}"):
            info = self._derived(node) if key.sort == "Tensor" else None
            if isinstance(info, TensorStructInfo):
                missing = list(self._missing(key.value, info))
                name = self._name(key, node) if missing else None
                yield from (claim.format(name) for claim in missing if name is not None)

    def _derived(self, node: Node[Key]) -> StructInfo | None:
        try:
            return self._infos.derived(node)
        except IllTyped as problem:
            raise SaturationError(f"it makes an ill-typed value: {problem}") from None

    def _missing(self, value: Value, info: TensorStructInfo) -> Iterator[str]:
        """Claims of unknown facts, with a placeholder for the name of the class."""
        if info.dims is not None and not _agree(self._tables.shape(value), info.dims):
            yield f"(shape-claim {{}} {literals.shape(info.dims)})"
        elif info.ndim >= 0 and self._tables.rank(value) is None:
            yield f"(set (rank-of {{}}) {info.ndim})"
        if info.dtype is not None and self._tables.dtype(value) != info.dtype:
            yield f"(dtype-claim {{}} {literals.string(info.dtype)})"

    def _name(self, key: Key, known: Node[Key] | None = None) -> str | None:
        """A term of class `key` over loaded values; ``None`` if there is none.

        With `known`, a node of the class, it rarely reads the other nodes.
        """
        if key in self._loaded:
            return self._loaded[key]
        if key not in self._names:
            self._names[key] = None  # ends the recursion on a cycle
            written = map(self._written, self._nodes(key, known))
            self._names[key] = next((text for text in written if text is not None), None)
        return self._names[key]

    def _nodes(self, key: Key, known: Node[Key] | None) -> Iterator[Node[Key]]:
        if known is not None:
            yield known
        yield from self._tables.nodes_at(key)

    def _written(self, node: Node[Key]) -> str | None:
        classes = {c: self._name(c) for c in node.operands}
        if None in classes.values():
            return None
        names = {c: str(name) for c, name in classes.items()}
        if node.op in _WRITTEN or node.op in operators():
            return constructor_of(node.op).text(node, names.__getitem__)
        return None


_WRITTEN = (LEAF, SCALAR, TUPLE_GET, *CALLS)
"""Nodes without an operator that can name a class."""


def _agree(known: Shape | None, claimed: Shape) -> bool:
    if known is None or len(known) != len(claimed):
        return False
    return all(a == b or dims.equal(a, b) for a, b in zip(known, claimed, strict=True))
