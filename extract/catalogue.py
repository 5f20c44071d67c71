"""The kernels that a library offers: each structure is built, scheduled and priced once."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from relax_egraph.egraph.node import LOAD
from relax_egraph.egraph.view import ClassId, EClass, ENode
from relax_egraph.extract.cut import TOGETHER, Cut, Structure, Term
from relax_egraph.extract.library import KernelLibrary
from relax_egraph.extract.nodes import results_of
from relax_egraph.extract.pricing import Pricing
from relax_egraph.ir.dtypes import is_float, scalar
from relax_egraph.ir.expr import Binding
from relax_egraph.ir.kernel import Input, Kernel, Promise, Step
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo


@dataclass(frozen=True, slots=True)
class Offer:
    """A kernel that the library runs by the schedule `anchor`, at `seconds`: its promise."""

    kernel: Kernel
    anchor: str
    seconds: float


class Catalogue:
    """The offers of one library for cuts of one view."""

    def __init__(
        self, classes: Mapping[ClassId, EClass], library: KernelLibrary, pricing: Pricing
    ) -> None:
        self._classes = classes
        self._library = library
        self._pricing = pricing
        self._offers: dict[Structure, Offer | None] = {}
        self._symbols: dict[object, int] = {}
        self._leaves: dict[ClassId, int] = {}
        self._unknown: set[int] = set()
        self._operator_costs: dict[object, float] = {}

    @property
    def num_queries(self) -> int:
        """How many distinct structures the library was queried for."""
        return len(self._offers)

    def term(self, owner: ClassId, node: ENode) -> Term:
        """The term of a node of class `owner`: an operator on classes, or a load."""
        if node.op == LOAD:
            return Term(owner, node, -1, source=node.operands[0])
        info = self._classes[owner].struct_info
        operands = tuple(self._classes[c].struct_info for c in node.operands)
        plain = (c for c in node.children if not isinstance(c, int))
        others = tuple(len(c) if isinstance(c, tuple) else c for c in plain)
        symbol = self._symbol((node.op, others, node.attrs, info), info)
        seconds = self._pricing.computing(node.op, dict(node.attrs), operands, info)
        return Term(owner, node, symbol, node.operands, seconds=seconds)

    def offer(self, cut: Cut) -> Offer | None:
        """The kernel that computes `cut`; ``None`` if the library has no schedule for it.

        The library is not queried for a kernel with an unknown shape or dtype.
        """
        for leaf in cut.leaves:
            if leaf not in self._leaves:
                info = self._classes[leaf].struct_info
                self._leaves[leaf] = self._symbol((info, self._scalar(leaf)), info)
        structure = cut.structure(self._leaves)
        if structure not in self._offers:
            self._offers[structure] = self._query(cut, structure)
        return self._offers[structure]

    def operator_cost(self, c: ClassId, node: ENode) -> float:
        """Seconds for the operator `node` of class `c` outside of kernels."""
        operands = tuple(self._classes[k].struct_info for k in node.operands)
        others = tuple(o for o in node.children if not isinstance(o, int | tuple))
        results = results_of(self._classes, c, node)
        key = (node.op, node.attrs, operands, others, results)
        if key not in self._operator_costs:
            op, attrs = OPS[node.op], dict(node.attrs)
            schedule = self._library.schedule_of_operator(op, attrs, operands, results)
            seconds = self._pricing.operator(op.name, attrs, operands, results, schedule)
            self._operator_costs[key] = seconds
        return self._operator_costs[key]

    def opaque(self, binding: Binding) -> float:
        """Seconds for an opaque `binding`, which runs unchanged."""
        return self._pricing.opaque(binding)

    def _query(self, cut: Cut, structure: Structure) -> Offer | None:
        loads, steps = structure
        if not self._unknown.isdisjoint(loads) or any(s in self._unknown for s, _ in steps):
            return None
        kernel = self.kernel(cut)
        schedule = self._library.schedule_of(kernel)
        if schedule is None:
            return None
        seconds = self._pricing.kernel(kernel, schedule)
        promise = Promise(schedule.anchor, seconds)
        offered = Offer(replace(kernel, promise=promise), schedule.anchor, seconds)
        return offered if seconds < math.inf else None

    def kernel(self, cut: Cut) -> Kernel:
        """The kernel that computes `cut`, whether the library runs it or not."""
        count = len(cut.leaves)
        inputs = (Input(self._classes[c].struct_info, self._scalar(c)) for c in cut.leaves)
        steps: list[Step] = []
        for term, numbers in cut.steps:
            if term.node.op == TOGETHER:
                return Kernel(tuple(inputs), tuple(steps), tuple([count + n for n in numbers]))
            values = [-1 - n if n < 0 else count + n for n in numbers]
            operands = tuple(_operands(term.node, iter(values)))
            info = self._classes[term.owner].struct_info
            steps.append(Step(OPS[term.node.op], operands, term.node.attrs, info))
        return Kernel(tuple(inputs), tuple(steps), (count + len(steps) - 1,))

    def _scalar(self, leaf: ClassId) -> float | int | bool | None:
        """The known value of a tensor of rank 0, in its own dtype."""
        eclass = self._classes[leaf]
        dtype, value = eclass.struct_info.dtype, eclass.scalar
        if value is None or dtype is None or eclass.struct_info.dims != ():
            return None
        return value if is_float(dtype) else scalar(value, dtype).item()

    def _symbol(self, key: object, info: TensorStructInfo) -> int:
        symbol = self._symbols.setdefault(key, len(self._symbols))
        if not self._pricing.known(info):
            self._unknown.add(symbol)
        return symbol


def _operands(
    node: ENode, values: Iterator[int]
) -> Iterator[int | tuple[int, ...] | ShapeStructInfo]:
    """The operands of a step that applies `node` to `values`, in order."""
    for child in node.children:
        match child:
            case int():
                yield next(values)
            case tuple():
                yield tuple([next(values) for _ in child])
            case ShapeStructInfo():
                yield child
            case _:
                pass
