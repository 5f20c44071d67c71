"""The choice among plans as a problem of selection: what each device has of each value.

A class of the e-graph may be needed in two ways: `WHOLE`, all of it on every device, or in `PARTS`,
a part of its own on each.  A node makes its class in the way that follows from those of its
operands, at what it costs on one device; collectives and cuts lead from one way to the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from relax_egraph.egraph.node import CALLS, LEAF, OPAQUE, SCALAR, TUPLE_GET
from relax_egraph.egraph.node import WHOLE as TUPLE
from relax_egraph.egraph.view import Choice, ClassId, ENode, Program, View
from relax_egraph.errors import ExtractionError
from relax_egraph.extract.problem import Candidate, Problem, Selection
from relax_egraph.ir.operators import named
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from relax_egraph.shards.local import COLLECTIVES, SHARD, SPREADS, on_a_part, part_of
from relax_egraph.shards.prices import FREE, DevicePrices

WHOLE, PARTS = 0, 1

ANY = -1
"""The axis of a tensor that may be kept in parts along any axis."""

Place = int
"""A class in one of both ways."""


def place(c: ClassId, way: int) -> Place:
    """Class `c`, `WHOLE` or in `PARTS`."""
    return 2 * c + way


@dataclass(frozen=True, slots=True)
class Made:
    """A candidate: `node` makes class `made`, in a `way`; it costs `seconds` on each device."""

    made: ClassId
    way: int
    node: ENode
    needs: frozenset[Place]
    seconds: float


class Candidates:
    """The ways to make the classes of a view, at prices on one device.

    `kept` says which leaves devices keep in parts, by number, along which axis: their parts cost
    nothing, and no device has a matrix whole without gathering it.
    """

    def __init__(self, view: View, kept: Mapping[int, int], prices: DevicePrices) -> None:
        self._classes, self._opaque, self._leaves = view.classes, view.opaque, view.leaves
        self._kept = kept
        self._prices = prices

    def among(self, roots: Sequence[Place]) -> tuple[Made, ...]:
        """All candidates that `roots` may need."""
        found: list[Made] = []
        todo = [*dict.fromkeys(root // 2 for root in roots)]
        seen = set(todo)
        while todo:
            c = todo.pop()
            for node in self._classes[c].nodes:
                found += self._of(c, node)
                new = [k for k in dict.fromkeys(node.operands) if k not in seen]
                todo += new
                seen.update(new)
        return tuple(found)

    def _of(self, c: ClassId, node: ENode) -> Iterator[Made]:
        info = self._classes[c].struct_info
        match node.op:
            case "leaf":
                if self._kept.get(node.key) is None or self._may_be_whole(node.key):
                    yield Made(c, WHOLE, node, frozenset(), 0.0)
            case "scalar":
                yield Made(c, WHOLE, node, frozenset(), 0.0)
            case "dist.shard":
                yield self._cut(c, node, info)
            case "dist.replicate":
                yield Made(c, PARTS, node, _needs(node, WHOLE), FREE)
            case op if op in COLLECTIVES:
                yield Made(c, WHOLE, node, _needs(node, PARTS), self._prices.call(op, info))
            case _:
                yield Made(c, WHOLE, node, _needs(node, WHOLE), self._whole(c, node))
                yield from self._by_parts(c, node)

    def _may_be_whole(self, key: int) -> bool:
        """Whether a tensor of which devices keep parts is as well kept whole: it is no matrix."""
        info = self._leaves[key].struct_info
        vector = isinstance(info, TensorStructInfo) and 0 <= info.ndim < 2
        return vector and self._kept[key] == ANY

    def _cut(self, c: ClassId, node: ENode, info: TensorStructInfo) -> Made:
        """A part: what a device keeps, or copies of what it has whole."""
        (k,), axis = node.operands, dict(node.attrs)["axis"]
        for leaf in (n for n in self._classes[k].nodes if n.op == LEAF):
            if self._kept.get(leaf.key) in (ANY, axis):
                return Made(c, PARTS, node, frozenset(), FREE)
        seconds = self._prices.call(SHARD, part_of(info))
        return Made(c, PARTS, node, _needs(node, WHOLE), seconds)

    def _whole(self, c: ClassId, node: ENode) -> float:
        """Seconds for `node` on a device that has all of its operands."""
        info = self._classes[c].struct_info
        if node.op in (TUPLE_GET, TUPLE):
            return FREE
        if node.op == OPAQUE:
            return self._prices.pricing.opaque(self._opaque[node.key])
        if node.op in CALLS:
            operands = [self._classes[k].struct_info for k in node.operands]
            return self._prices.pricing.call(node.callee, operands, node.call_info)
        infos, op = self._infos(node), named(node.op)
        return self._prices.operator(op, infos, dict(node.attrs), info)

    def _by_parts(self, c: ClassId, node: ENode) -> Iterator[Made]:
        """`node` on a part of its operands; weights of norms, and angles, are whole."""
        if node.op in _NOT_BY_PARTS or self._classes[c].sort != "tensor":
            return
        op, infos = named(node.op), self._infos(node)
        tensors = [isinstance(i, TensorStructInfo | TupleStructInfo) for i in infos]
        in_parts = [t and (k == 0 or op.name not in _ONE_IN_PARTS) for k, t in enumerate(tensors)]
        ways = [in_parts, [False] * len(infos)] if op.name == SPREADS else [in_parts]
        for way in ways:
            yield from self._locally(c, node, way)

    def _locally(self, c: ClassId, node: ENode, in_parts: Sequence[bool]) -> Iterator[Made]:
        op, infos, info = named(node.op), self._infos(node), self._classes[c].struct_info
        local = on_a_part(op, infos, in_parts, dict(node.attrs), info)
        if local is None or info.dims is None or info.dims[0] != self._prices.parts:
            return
        needs = frozenset(
            place(k, PARTS if has else WHOLE)
            for child, has in zip(node.children, in_parts, strict=True)
            for k in (child if isinstance(child, tuple) else (child,))
            if isinstance(k, int)
        )
        seconds = self._prices.operator(op, local.operands, local.attrs, local.result)
        yield Made(c, PARTS, node, needs, seconds)

    def _infos(self, node: ENode) -> tuple[StructInfo | None, ...]:
        return node.infos(lambda k: self._classes[k].struct_info)


_NOT_BY_PARTS = frozenset((LEAF, SCALAR, OPAQUE, TUPLE_GET, TUPLE, *CALLS))

_ONE_IN_PARTS = ("nn.layer_norm", "nn.rms_norm", "nn.rotary_embedding")
"""Operators whose operands but the first have no axis of parts."""


def _needs(node: ENode, way: int) -> frozenset[Place]:
    return frozenset(place(k, way) for k in node.operands)


def problem_of(candidates: Sequence[Made], roots: Sequence[Place]) -> Problem:
    """The selection among `candidates`, in their order."""
    each = (Candidate(place(m.made, m.way), m.needs, m.seconds) for m in candidates)
    return Problem(tuple(each), tuple(dict.fromkeys(roots)))


def program_of(
    view: View, candidates: Sequence[Made], selection: Selection
) -> tuple[View, Program]:
    """The choices of a selection, and the view with a class more for each leaf in parts.

    So a weight that is gathered is another value than the one that was cut.  Raises
    `ExtractionError` if a class is needed in both ways: the tensors are of one shape then.
    """
    classes = dict(view.classes)
    chosen: dict[ClassId, Choice] = {}
    kept: dict[ClassId, ClassId] = {}
    for made in (candidates[number] for number in selection.chosen):
        node = made.node
        if node.op == SHARD and not made.needs:
            (k,) = node.operands
            if k not in kept:
                leaf = next(n for n in view.classes[k].nodes if n.op == LEAF)
                kept[k] = len(classes)
                classes[kept[k]] = replace(view.classes[k], nodes=(leaf,))
                chosen[kept[k]] = Choice(leaf, (), (kept[k],))
            node = node.over(kept.__getitem__)
        if made.made in chosen:
            raise ExtractionError(f"class {made.made} is needed in parts, and whole")
        chosen[made.made] = Choice(node, node.operands, (made.made,))
    return replace(view, classes=classes), tuple(chosen.values())
