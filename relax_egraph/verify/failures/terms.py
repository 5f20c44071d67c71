"""Terms of a rule, computed in some domain: of arrays, or of struct info."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from relax_egraph.egraph.encoding.attributes import meant
from relax_egraph.egraph.rulebook.forms import Form, Tree
from relax_egraph.egraph.rulebook.rule import Direction
from relax_egraph.egraph.rulebook.vocabulary import operators
from relax_egraph.ir.op import Op, OperandKind
from relax_egraph.ir.struct_info import ShapeStructInfo, StructInfo, TupleStructInfo
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.instances.known import prim_info
from relax_egraph.verify.instances.primitives import compute, computes
from relax_egraph.verify.instances.query import Literal, literal_of


class Unknown(Exception):
    """A side is written with what only egglog computes."""


class Domain(Protocol):
    """What tensors are in some domain, and what operators make of them."""

    def tensor(self, variable: str) -> Any:
        """The value of a tensor, or of several, of the instance; raises `Fails` without one."""
        ...

    def number(self, value: float, dtype: str) -> Any:
        """A tensor of rank 0."""
        ...

    def part(self, whole: Any, index: int) -> Any:
        """One of several results."""
        ...

    def applied(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """What `op` makes of tensors, lists of them, shapes and scalars of the host."""
        ...


def equated(pattern: Direction) -> tuple[tuple[Tree, Tree], ...]:
    """What `pattern` says is one; nothing if it deduces facts, or does so too."""
    other = any(a.head not in ("union", "let") for a in pattern.actions)
    return () if other else pattern.unions


@dataclass(slots=True)
class Terms:
    """Terms of a rule with the values that an instance gives to its variables.

    `bound` are the terms for which the rule has names.
    """

    instance: Instance
    domain: Domain
    bound: dict[str, Tree] = field(default_factory=dict[str, Tree])

    @staticmethod
    def of(pattern: Direction, instance: Instance, domain: Domain) -> "Terms":
        """The terms of `pattern`."""
        return Terms(instance, domain, pattern.lets)

    def value(self, tree: Tree) -> Any:
        """The value of `tree`: of a tensor one of the domain, of others what instances have.

        Raises `Unknown`, `Fails`, and whatever an operator raises that refuses its operands.
        """
        if isinstance(tree, Form):
            return self.applied(tree)
        literal = literal_of(tree.text)
        return literal.value if literal is not None else self.variable(tree.text)

    def variable(self, name: str) -> Any:
        """The value of a variable of the rule."""
        if name in self.bound:
            return self.value(self.bound[name])
        problem = self.instance.problem
        known = problem.names.get(name, name)
        if isinstance(known, Literal):
            return known.value
        if known in problem.elements:
            return tuple(self.variable(t) for t in problem.elements[known])
        if (node := problem.made.get(known)) is not None and node.head == "R.none":
            return None
        if problem.sorts.get(known) in ("Tensor", "Kernel", "Tuple"):
            return self.domain.tensor(known)
        if known not in self.instance.values:
            raise Unknown(name)
        return self.instance.values[known]

    def applied(self, tree: Form) -> Any:
        """The value of an application."""
        args = [self.value(item) for item in tree.items[1:]]
        match tree.head:
            case "R.none":
                return None
            case "R.const":
                return self.domain.number(float(args[0]), args[1])
            case "K.load" | "K.store":
                return args[0]
            case "R.tuple_get":
                return self.domain.part(args[0], args[1])
            case head if head[:2] in ("R.", "K.") and head[2:] in operators():
                op = operators()[head[2:]].op
                count = len(op.operands)
                given = zip(op.attrs, args[count:], strict=True)
                attrs = {a.name: meant(a, v) for a, v in given}
                return self.domain.applied(op, args[:count], attrs)
            case head if computes(head):
                return compute(head, tuple(args))
            case head:
                raise Unknown(head)


def inferred(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> StructInfo:
    """The struct info of what `op` makes of operands, of tensors their struct info.

    Raises `IllTyped`.
    """
    given = list(operands)
    while given and given[-1] is None:
        given.pop()
    infos = (_info(o.kind, value) for o, value in zip(op.operands, given, strict=False))
    return op.rule(*infos, **attrs)


def _info(kind: OperandKind, value: Any) -> StructInfo | None:
    match kind:
        case "tensors":
            return TupleStructInfo(tuple(value))
        case "shape":
            return ShapeStructInfo(value, len(value))
        case "tensor":
            return value
        case _:
            return prim_info(value)
