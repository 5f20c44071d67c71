"""Before and after: a rule on a random instance that it matched, both sides in script form."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from relax_egraph.egraph.encoding.attributes import meant
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Form, Tree
from relax_egraph.egraph.rulebook.rule import Direction, Rule
from relax_egraph.errors import IllTyped, SaturationError
from relax_egraph.ir.expr import Call, Constant, Expr, PrimValue, ShapeExpr, TupleGetItem, Var
from relax_egraph.ir.expr import Tuple as TupleExpr
from relax_egraph.ir.op import Op
from relax_egraph.script.expression_printer import Constants, ExpressionPrinter
from relax_egraph.verify.failures.shown import names_of
from relax_egraph.verify.failures.terms import Terms, Unknown
from relax_egraph.verify.group import Group
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.instances.primitives import Fails
from relax_egraph.verify.instances.problem import VALUES
from relax_egraph.verify.instances.query import Arg, Literal, spelled

_ROUNDS, _ATTEMPTS, _PLAINEST = 4, 24, 4
"""Rounds, instances that are drawn in each, and those of them that are tried first."""


@dataclass(frozen=True, slots=True)
class Example:
    """The operands of an instance with their types, and the two sides."""

    operands: tuple[str, ...]
    before: str
    after: str


def example_of(book: RuleBook, rule: Rule) -> Example | None:
    """A plain instance that `rule` matched, out of some; ``None`` if no two sides can be shown."""
    for direction in rule.directions:
        for instance in _matched(book, direction):
            for example in _sides(direction, instance):
                return example
    return None


def _matched(book: RuleBook, direction: Direction) -> Iterator[Instance]:
    """Instances that egglog matched, the plainest first; larger ones where no small one matches."""
    group = Group(book, direction, Random(0), chains={direction.name: (direction,)})
    for number in range(_ROUNDS):
        drawn = (group.attempt((direction,), small=number == 0) for _ in range(_ATTEMPTS))
        instances = sorted(filter(None, drawn), key=_oddness)
        for some in (instances[:_PLAINEST], instances[_PLAINEST:]):
            try:
                trial = group.tried(some)
            except SaturationError:
                continue
            group.record(trial)
            yield from trial[0]


def _oddness(instance: Instance) -> tuple[int, ...]:
    """A sort key: matrices of float32 with usual extents come first."""
    infos = [instance.info(v) for v in instance.problem.shapes if v in instance.problem.needed]
    dims = [info.dims or () for info in infos]
    return (
        sum(info.dtype != "float32" for info in infos),
        sum(d in (0, 1) for shape in dims for d in shape),
        sum(abs(len(shape) - 2) for shape in dims),
    )


def _sides(pattern: Direction, instance: Instance) -> Iterator[Example]:
    domain = _Expressions(instance, names_of(pattern, instance))
    terms = _InAnyOrder(instance, domain, pattern.lets)
    printer = ExpressionPrinter({}, {}, Constants())
    for left, right in (*pattern.unions, *_numbers(pattern)):
        try:
            before, after = terms.value(left), terms.value(right)
        except (Unknown, Fails, IllTyped, KeyError):
            continue  # only egglog knows a value
        said = printer.text(after) if isinstance(after, Expr) else f"{after}, each element"
        operands = (domain.said(variable, printer) for variable in domain.leaves)
        yield Example(tuple(operands), printer.text(before), said)


def _numbers(pattern: Direction) -> Iterator[tuple[Tree, Tree]]:
    """The values that `pattern` states to have one number as each element, and the number."""
    for action in pattern.actions:
        match action.items:
            case [_, Form(head="const-scalar") as stated, number] if action.head == "set":
                yield stated.items[1], number
            case _:
                pass


class _InAnyOrder(Terms):
    """Terms in which the order of two operands, which egglog decides, is that of the rule."""

    def application(self, head: str, args: Sequence[Any]) -> Any:
        match head:
            case "ordering-min":
                return args[0]
            case "ordering-max":
                return args[1]
            case _:
                return super().application(head, args)


@dataclass(frozen=True, slots=True)
class _Expressions:
    """Expressions as the domain of `Terms`; `names` are those of leaves in the rule."""

    instance: Instance
    names: Mapping[str, str]
    leaves: dict[str, Var] = field(default_factory=dict[str, Var])

    def said(self, variable: str, printer: ExpressionPrinter) -> str:
        """The leaf `variable` with its type, and the number that the rule requires it to hold."""
        leaf, number = self.leaves[variable], self.instance.problem.scalars.get(variable)
        elements = "" if number is None else f", each element {self.instance.get(number)}"
        return f"{leaf.name}: {printer.info.text(leaf.struct_info)}{elements}"

    def tensor(self, variable: str) -> Expr:
        node = self.instance.problem.producers.get(variable)
        if node is None:
            return self._leaf(variable)
        args = [self._argument(arg) for arg in node.args]
        match node.head:
            case "R.tuple_get":
                return self.part(*args)
            case "R.const":
                return self.number(*args)
            case "K.load" | "K.store":
                return args[0]
            case _ if node.op is None:
                raise Fails
            case _:
                count = len(node.op.operands)
                attrs = zip(node.op.attrs, args[count:], strict=True)
                return self.applied(node.op, args[:count], {a.name: meant(a, v) for a, v in attrs})

    def number(self, value: float, dtype: str) -> Expr:
        return Constant(np.array(value, dtype))

    def part(self, whole: Expr, index: int) -> Expr:
        return TupleGetItem(whole, index)

    def applied(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Expr:
        present = [operand for operand in operands if operand is not None]
        kinds = (operand.kind for operand in op.operands)
        return Call(op, tuple(map(_operand, kinds, present)), dict(attrs))

    def _leaf(self, variable: str) -> Var:
        if variable not in self.leaves:
            name = (self.names.get(variable) or spelled(variable)).replace("-", "_")
            taken = {leaf.name for leaf in self.leaves.values()}
            free = (f"{name}{number}" for number in range(1, len(taken) + 2))
            unique = name if name not in taken else next(n for n in free if n not in taken)
            self.leaves[variable] = Var(unique, self.instance.info(variable))
        return self.leaves[variable]

    def _argument(self, arg: Arg) -> Any:
        problem = self.instance.problem
        if isinstance(arg, Literal):
            return arg.value
        if arg in problem.elements:
            return tuple(map(self._argument, problem.elements[arg]))
        node = problem.producers.get(arg)
        if node is not None and node.head == "R.none":
            return None
        is_value = node is not None or problem.sorts.get(arg) in (*VALUES, "Tuple")
        return self.tensor(arg) if is_value else self.instance.get(arg)


def _operand(kind: str, value: Any) -> Expr:
    match kind, value:
        case "tensors", _:
            return TupleExpr(tuple(value))
        case "shape", _:
            return ShapeExpr(tuple(value))
        case _, int() | float():
            return PrimValue(value)
        case _:
            return value
