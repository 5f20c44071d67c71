"""The kernels that a library offers for the cuts of one view."""

from collections.abc import Mapping

from relax_egraph.egraph.node import LOAD
from relax_egraph.egraph.view import ClassId, EClass, ENode
from relax_egraph.extract.cut import TOGETHER, Cut, Structure, Term
from relax_egraph.extract.nodes import results_of
from relax_egraph.extract.offers import Offer, Offers
from relax_egraph.extract.pricing import Pricing
from relax_egraph.ir.dtypes import is_float, scalar
from relax_egraph.ir.expr import Binding
from relax_egraph.ir.kernel import Input, Kernel, Step
from relax_egraph.ir.operators import named
from relax_egraph.ir.struct_info import ShapeStructInfo

Operand = int | tuple[int, ...] | ShapeStructInfo


class Catalogue:
    """Terms and cuts of the classes of one view, and what `offers` has for them."""

    def __init__(self, classes: Mapping[ClassId, EClass], offers: Offers) -> None:
        self._classes = classes
        self._offers = offers
        self._known: dict[Structure, Offer | None] = {}
        self._leaves: dict[ClassId, int] = {}
        self._inputs: dict[ClassId, Input] = {}
        self._terms: dict[tuple[ClassId, int], Term] = {}
        self._steps: dict[tuple[int, tuple[int, ...]], Step] = {}

    @property
    def pricing(self) -> Pricing:
        """The objective of extraction."""
        return self._offers.pricing

    @property
    def num_queries(self) -> int:
        """How many distinct structures the cuts have."""
        return len(self._known)

    def term(self, owner: ClassId, node: ENode) -> Term:
        """The term of a node of class `owner`: an operator on classes, or a load."""
        key = (owner, id(node))  # the view holds its nodes
        if key not in self._terms:
            self._terms[key] = self._new_term(owner, node)
        return self._terms[key]

    def offer(self, cut: Cut) -> Offer | None:
        """The kernel that computes `cut`; ``None`` if the library has no schedule for it."""
        for leaf in cut.leaves:
            if leaf not in self._leaves:
                info = self._classes[leaf].struct_info
                self._leaves[leaf] = self._offers.symbol((info, self._scalar(leaf)), info)
        structure = cut.structure(self._leaves)
        if structure not in self._known:
            self._known[structure] = self._offers.of(structure, lambda: self.kernel(cut))
        return self._known[structure]

    def may_grow(self, cut: Cut) -> bool:
        """Whether a larger cut on top of `cut`, which the library refuses, may run."""
        return self._offers.may_grow(frozenset([term.node.op for term, _ in cut.steps]))

    def operator_cost(self, c: ClassId, node: ENode) -> float:
        """Seconds for the operator `node` of class `c` outside of kernels."""
        operands = tuple(self._classes[k].struct_info for k in node.operands)
        others = tuple(o for o in node.children if not isinstance(o, int | tuple))
        results = results_of(self._classes, c, node)
        return self._offers.operator(node.op, node.attrs, operands, others, results)

    def opaque(self, binding: Binding) -> float:
        """Seconds for an opaque `binding`, which runs unchanged."""
        return self.pricing.opaque(binding)

    def call_cost(self, node: ENode) -> float:
        """Seconds for the call `node` of a function below the graph."""
        operands = tuple(self._classes[k].struct_info for k in node.operands)
        return self.pricing.call(node.callee, operands, node.call_info)

    def kernel(self, cut: Cut) -> Kernel:
        """The kernel that computes `cut`, whether the library runs it or not."""
        count = len(cut.leaves)
        inputs = tuple([self._inputs.get(c) or self._input(c) for c in cut.leaves])
        steps: list[Step] = []
        for term, numbers in cut.steps:
            values = tuple([-1 - n if n < 0 else count + n for n in numbers])
            if term.node.op == TOGETHER:
                return Kernel(inputs, tuple(steps), values)
            step = self._steps.get((term.symbol, values))
            if step is None:
                info = self._classes[term.owner].struct_info
                operands = _operands(term.node, values)
                step = Step(named(term.node.op), operands, term.node.attrs, info)
                self._steps[term.symbol, values] = step
            steps.append(step)
        return Kernel(inputs, tuple(steps), (count + len(steps) - 1,))

    def _new_term(self, owner: ClassId, node: ENode) -> Term:
        if node.op == LOAD:
            return Term(owner, node, -1, source=node.operands[0])
        children = node.operands
        info = self._classes[owner].struct_info
        infos = tuple([self._classes[c].struct_info for c in children])
        others = tuple(
            [len(c) if isinstance(c, tuple) else c for c in node.children if type(c) is not int]
        )
        symbol = self._offers.symbol((node.op, others, node.attrs, info), info)
        seconds = self.pricing.computing(node.op, dict(node.attrs), infos, info)
        return Term(owner, node, symbol, children, seconds=seconds)

    def _input(self, leaf: ClassId) -> Input:
        """The tensor that kernels load of class `leaf`: one for all kernels."""
        info = self._classes[leaf].struct_info
        return self._inputs.setdefault(leaf, Input(info, self._scalar(leaf)))

    def _scalar(self, leaf: ClassId) -> float | int | bool | None:
        """The known value of a tensor of rank 0, in its own dtype."""
        eclass = self._classes[leaf]
        dtype, value = eclass.struct_info.dtype, eclass.scalar
        if value is None or dtype is None or eclass.struct_info.dims != ():
            return None
        return value if is_float(dtype) else scalar(value, dtype).item()


def _operands(node: ENode, values: tuple[int, ...]) -> tuple[Operand, ...]:
    """The operands of a step that applies `node` to `values`, in order."""
    operands: list[Operand] = []
    position = 0
    for child in node.children:
        if type(child) is int:
            operands.append(values[position])
            position += 1
        elif isinstance(child, tuple):
            operands.append(values[position : position + len(child)])
            position += len(child)
        elif isinstance(child, ShapeStructInfo):
            operands.append(child)
    return tuple(operands)
