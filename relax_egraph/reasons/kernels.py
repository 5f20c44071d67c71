"""The calls of an optimized module, and the operators of the source that each call replaces.

A value that both programs compute is the same function of other values that both compute.  The
operators between such values in the source correspond to the calls between them in the result.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from relax_egraph.egraph.node import LEAF, SCALAR, Node
from relax_egraph.egraph.view import Choice, ClassId, View
from relax_egraph.ir.expr import (
    Call,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.optimize.explanation import Explanation, PlacedRegion
from relax_egraph.reasons.definitions import bindings_in


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """A call in the result: the `choice` of extraction in region `placed`, bound to `variable`.

    `callee` is the name of the fused function or of the operator.  `replaces` are the variables of
    the source whose operators the call replaces, in order; several calls may replace one together.
    """

    function: str
    variable: Var
    callee: str
    operators: tuple[str, ...]
    placed: PlacedRegion
    choice: Choice
    replaces: tuple[Var, ...]

    @property
    def is_fused(self) -> bool:
        """Whether the call runs several operators as one kernel."""
        return len(self.operators) > 1


def running_in(explanation: Explanation) -> tuple[Running, ...]:
    """The calls of the planned functions, in the order of the program."""
    running: list[Running] = []
    regions: dict[str, list[PlacedRegion]] = {}
    for placed in explanation.placed:
        regions.setdefault(placed.function, []).append(placed)
    for name, function in explanation.module.relax_functions():
        if name in regions:
            running += _running(name, function, regions[name])
    return tuple(running)


def _running(name: str, function: Function, regions: list[PlacedRegion]) -> Iterator[Running]:
    bound = [b for b in bindings_in(function) if isinstance(b, VarBinding)]
    parts = {b.value.tuple_value: b.var for b in bound if isinstance(b.value, TupleGetItem)}
    choices = _Choices(regions)
    by_var = {b.var: choices.of(b.var) or choices.of(parts.get(b.var)) for b in bound}
    alive = [origin[1] for origin in by_var.values() if origin]
    claims = {id(placed): replaced(placed, alive) for placed in regions}
    for binding in bound:
        value, origin = binding.value, by_var[binding.var]
        if origin is None or not isinstance(value, Call):
            continue
        placed, choice = origin
        claimed = claims[id(placed)].get(choice.outputs, frozenset())
        yield Running(
            name,
            binding.var,
            _callee(value),
            operators_of(choice),
            placed,
            choice,
            tuple(var for var, c in placed.origin.items() if c in claimed),
        )


def _callee(call: Call) -> str:
    """The operator of `call`, or the name of the function that it calls."""
    for value in (call.op, *call.args[:1]):
        if isinstance(value, GlobalVar | ExternFunc):
            return value.name
    return str(call.op)


class _Choices:
    """Finds the choice that computes a variable of the result, by name if a pass replaced it."""

    def __init__(self, regions: list[PlacedRegion]) -> None:
        self._by_var: dict[Expr, tuple[PlacedRegion, Choice]] = {}
        self._by_name: dict[str, list[Var]] = {}
        for placed in regions:
            program = placed.region.extraction.program
            producers = {c: choice for choice in program for c in choice.outputs}
            for c, value in placed.values.items():
                choice = producers.get(c)
                if isinstance(value, Var) and choice is not None and not _is_input(choice):
                    self._by_var.setdefault(value, (placed, choice))
                    self._by_name.setdefault(value.name, []).append(value)

    def of(self, var: Var | None) -> tuple[PlacedRegion, Choice] | None:
        if var is None or var in self._by_var:
            return None if var is None else self._by_var[var]
        named = self._by_name.get(var.name, [])
        return self._by_var[named[0]] if len(named) == 1 else None


def operators_of(choice: Choice) -> tuple[str, ...]:
    """The operators that a choice runs, in order, without the broadcasts between them."""
    if isinstance(choice.how, Node):
        return (choice.how.op,)
    names = [step.op.name for step in choice.how.steps]
    return tuple(name for name in names if name != "broadcast_to") or tuple(names)


def replaced(
    placed: PlacedRegion, alive: Iterable[Choice]
) -> Mapping[tuple[ClassId, ...], frozenset[ClassId]]:
    """By the outputs of each choice, the classes of the source whose operators it replaces.

    A constant that no choice `alive` in the result computes is folded: its users replace its
    operators, too.  A broadcast that the source leaves implicit belongs to its user.
    """
    return _Replacing(placed, {id(choice) for choice in alive}).all()


@dataclass(slots=True)
class _Replacing:
    """`sources` has the classes of the source by result class, `producers` the choice of each."""

    placed: PlacedRegion
    alive: Set[int]
    sources: dict[ClassId, list[ClassId]] = field(default_factory=dict[ClassId, list[ClassId]])
    producers: dict[ClassId, Choice] = field(default_factory=dict[ClassId, Choice])
    users: dict[ClassId, list[ClassId]] = field(default_factory=dict[ClassId, list[ClassId]])

    def __post_init__(self) -> None:
        region = self.placed.region
        for source, now in region.became.items():
            self.sources.setdefault(now, []).append(source)
        for choice in region.extraction.program:
            self.producers.update(dict.fromkeys(choice.outputs, choice))
        named = set(self.placed.origin.values())
        for user, eclass in region.source.classes.items():
            for c in (c for node in eclass.nodes for c in node.operands if c not in named):
                self.users.setdefault(c, []).append(user)

    def all(self) -> dict[tuple[ClassId, ...], frozenset[ClassId]]:
        claims: dict[tuple[ClassId, ...], frozenset[ClassId]] = {}
        for choice in self.placed.region.extraction.program:
            for output in choice.outputs:
                if self._is_free(output) or output not in self.sources:
                    continue
                together, inputs = self._since(output)
                claimed = self._between(output, inputs)
                for part in together:
                    claims[part.outputs] = claims.get(part.outputs, frozenset()) | claimed
        return claims

    def _is_free(self, c: ClassId) -> bool:
        """Whether nothing runs for class `c`: it is an input, a number, or folded."""
        if c not in self.producers or _is_input(self.producers[c]):
            return True
        is_const = self.placed.region.view.classes[c].is_const
        return is_const and id(self.producers[c]) not in self.alive

    def _since(self, output: ClassId) -> tuple[list[Choice], set[ClassId]]:
        """The choices that compute `output` from values that the source has, too; and these."""
        together, inputs = [self.producers[output]], set[ClassId]()
        for choice in together:
            for c in choice.inputs:
                if self._is_free(c):
                    continue
                if c in self.sources:
                    inputs.add(c)
                elif self.producers[c] not in together:
                    together.append(self.producers[c])
        return together, inputs - {output}

    def _between(self, output: ClassId, inputs: set[ClassId]) -> frozenset[ClassId]:
        """The classes whose operators compute `output` from `inputs` in the source."""
        region = self.placed.region
        todo = list(self.sources[output])
        between = {*todo, *(user for c in todo for user in self.users.get(c, ()))}
        for source in todo:
            for node in region.source.classes[source].nodes:
                for c in node.operands:
                    if c not in between and region.became.get(c) not in inputs:
                        between.add(c)
                        todo.append(c)
        return frozenset(c for c in between if not _is_leaf(region.source, c))


def _is_leaf(view: View, c: ClassId) -> bool:
    return all(node.op == LEAF for node in view.classes[c].nodes)


def _is_input(choice: Choice) -> bool:
    return isinstance(choice.how, Node) and choice.how.op in (LEAF, SCALAR)
