"""The evaluator of a rule's terms, over a domain such as arrays or struct info."""

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
    """A term has a variable or an operator that only egglog computes."""


class Domain(Protocol):
    """The representation of tensors, and the operations on it."""

    def tensor(self, variable: str) -> Any:
        """The value of a variable of the instance; raises `Fails` without one."""
        ...

    def number(self, value: float, dtype: str) -> Any:
        """A tensor of rank 0 with this element."""
        ...

    def part(self, whole: Any, index: int) -> Any:
        """One field of a tuple."""
        ...

    def applied(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """The result of `op` on tensors, lists of tensors, shapes and host scalars."""
        ...


def equated(pattern: Direction) -> tuple[tuple[Tree, Tree], ...]:
    """The equations of `pattern`; none if it also deduces facts."""
    other = any(a.head not in ("union", "let") for a in pattern.actions)
    return () if other else pattern.unions


@dataclass(slots=True)
class Terms:
    """Evaluates terms of a rule with the values of an instance.

    `bound` are the terms that the rule names by ``let``.
    """

    instance: Instance
    domain: Domain
    bound: dict[str, Tree] = field(default_factory=dict[str, Tree])

    @staticmethod
    def of(pattern: Direction, instance: Instance, domain: Domain) -> "Terms":
        """The evaluator for the terms of `pattern`."""
        return Terms(instance, domain, pattern.lets)

    def value(self, tree: Tree) -> Any:
        """The value of `tree`: a tensor of the domain, or an attribute, shape or number.

        Raises `Unknown`, `Fails`, and the errors of operators that refuse their operands.
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
        if (node := problem.producers.get(known)) is not None and node.head == "R.none":
            return None
        if problem.sorts.get(known) in ("Tensor", "Kernel", "Tuple"):
            return self.domain.tensor(known)
        if known not in self.instance.values:
            raise Unknown(name)
        return self.instance.values[known]

    def applied(self, tree: Form) -> Any:
        """The value of an application."""
        return self.application(tree.head, [self.value(item) for item in tree.items[1:]])

    def application(self, head: str, args: Sequence[Any]) -> Any:
        """The value of ``(head args..)``."""
        match head:
            case "R.none":
                return None
            case "R.const":
                return self.domain.number(float(args[0]), args[1])
            case "K.load" | "K.store":
                return args[0]
            case "R.tuple_get":
                return self.domain.part(args[0], args[1])
            case "unstable-app":
                (name, *first), *rest = args
                return self.application(name, [*first, *rest])
            case _ if head[:2] in ("R.", "K.") and head[2:] in operators():
                op = operators()[head[2:]].op
                count = len(op.operands)
                attrs = {a.name: meant(a, v) for a, v in zip(op.attrs, args[count:], strict=True)}
                return self.domain.applied(op, args[:count], attrs)
            case _ if computes(head):
                return compute(head, tuple(args))
            case _:
                raise Unknown(head)


def inferred(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> StructInfo:
    """The struct info of the result of `op`, for operands with struct info in place of tensors.

    Raises `IllTyped`.
    """
    present = list(operands)
    while present and present[-1] is None:
        present.pop()
    infos = (_info(o.kind, value) for o, value in zip(op.operands, present, strict=False))
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
