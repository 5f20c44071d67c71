"""Hand-written traces: terms over variables and constants, and steps between them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph.egraph.node import Node, leaf_node, opaque_node, scalar_node
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.egraph.rulebook.reader import read
from relax_egraph.egraph.rulebook.rule import FloatClass, Rule
from relax_egraph.errors import Span
from relax_egraph.ir import dims
from relax_egraph.ir.assumptions import Assumptions
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Binding, Constant, DataflowVar, Expr, Tuple, Var, VarBinding
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import ShapeStructInfo, StructInfo, TensorStructInfo, tensor
from relax_egraph.proof.term import Operand, Term, Terms
from relax_egraph.proof.trace import Step, Trace

N = dims.symbol("n")


@dataclass
class Sketch:
    """A builder of traces: terms, with the values of their leaves."""

    terms: Terms = field(default_factory=Terms)
    leaves: dict[int, Expr] = field(default_factory=dict[int, Expr])
    opaque: dict[int, Binding] = field(default_factory=dict[int, Binding])
    rules: dict[str, Rule] = field(default_factory=dict[str, Rule])

    def variable(self, name: str, shape: tuple[Dim, ...], dtype: str = "float32") -> Term:
        return self._leaf(Var(name, tensor(shape, dtype)))

    def constant(self, data: npt.ArrayLike, dtype: str = "float32") -> Term:
        return self._leaf(Constant(np.asarray(data, dtype)))

    def call(self, name: str, *operands: Term, info: StructInfo) -> Term:
        """An opaque binding `name` of `operands`."""
        key = len(self.opaque)
        self.opaque[key] = VarBinding(DataflowVar(name, info), Tuple(()))
        return self.terms.term(opaque_node(key, operands))

    def scalar(self, number: float, shape: tuple[Dim, ...], dtype: str = "float32") -> Term:
        """`number`, broadcast to `shape`."""
        one = self.terms.term(scalar_node(number, dtype))
        return self("broadcast_to", one, ShapeStructInfo(shape, len(shape)))

    def __call__(self, op: str, *operands: Operand, **attrs: Any) -> Term:
        every = {a.name: a.default for a in OPS[op].attrs} if op in OPS else {}
        return self.terms.term(Node(op, operands, tuple((every | attrs).items())))

    def load(self, term: Term) -> Term:
        return self.terms.term(Node("load", (term,)))

    def store(self, term: Term) -> Term:
        return self.terms.term(Node("store", (term,)))

    def rule(
        self,
        name: str,
        law: str = "",
        float_class: FloatClass = "exact",
        form: str = "(rewrite (R.abs x) (R.abs x))",
    ) -> str:
        """A rule of this name, at a line of ``my.egg``."""
        span = Span("my.egg", 1 + len(self.rules), 1)
        (tree,) = read(Source("my.egg", form))
        self.rules[name] = Rule(name, "my", tree, span, law, float_class)
        return name

    def trace(
        self,
        source: Term,
        *steps: Step,
        result: Term,
        assumed: Assumptions | None = None,
        tolerance: float = 0.0,
    ) -> Trace:
        infos = {
            key: leaf.struct_info
            for key, leaf in self.leaves.items()
            if isinstance(leaf.struct_info, TensorStructInfo)
        }
        context = (self.leaves, infos, self.opaque, self.rules, assumed, tolerance)
        return Trace("main", "gv", source, result, steps, *context)

    def _leaf(self, value: Expr) -> Term:
        key = len(self.leaves)
        self.leaves[key] = value
        return self.terms.term(leaf_node(key))
