"""A saturation once more, and what each rule matched in it.

In each iteration, before rules are applied, a second rule with the same premises writes down what
is about to match: classes as the rule sees them, which the unions that follow have not yet made
one.  That is read, and forgotten, so that the run is the same as without.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, TypeAlias

from egglog.bindings import EGraph, FrozenRow, Value

from relax_egraph.egraph.attributes import meant
from relax_egraph.egraph.bulk import load_view
from relax_egraph.egraph.commands import Command, prepared, run, run_text
from relax_egraph.egraph.course import Course, Halt
from relax_egraph.egraph.report import Report
from relax_egraph.egraph.rulebook import OWN_PHASE, RuleBook, reading_of
from relax_egraph.egraph.run import Run
from relax_egraph.egraph.saturation import untold
from relax_egraph.egraph.schedule import Budget, Phase, Schedule
from relax_egraph.egraph.tables import Key, Tables
from relax_egraph.egraph.templates import Part, Shown, Slot, Template, shown
from relax_egraph.egraph.view import (
    LEAF,
    LOAD,
    OPAQUE,
    SCALAR,
    STORE,
    TUPLE_GET,
    WHOLE,
    ClassId,
    Sort,
    View,
)
from relax_egraph.egraph.vocabulary import operators, vocabulary_table
from relax_egraph.errors import SaturationError
from relax_egraph.ir.assumptions import Assumptions
from relax_egraph.ir.collection import no_collection
from relax_egraph.ir.expr import Attr, PrimValue
from relax_egraph.ir.struct_info import ShapeStructInfo


@dataclass(frozen=True, slots=True)
class Saturating:
    """A saturation that was done, as it was asked for, and its `report`: it can be repeated.

    The `book` and the `schedule` are made when they are asked for.  `assumed` holds of symbols.
    """

    view: View
    book: Callable[[], RuleBook]
    budget: Budget
    schedule: Callable[[], Schedule]
    report: Report
    assumed: Assumptions | None


@dataclass(frozen=True, slots=True)
class Made:
    """An operator over classes, or over what is made like this; fields as of `view.ENode`.

    A ``scalar`` has its dtype as attribute.
    """

    op: str
    children: tuple["Instance | tuple[Instance, ...] | ShapeStructInfo | PrimValue", ...] = ()
    attrs: tuple[tuple[str, Attr], ...] = ()
    key: int = -1
    scalar: float = 0.0
    sort: Sort = "tensor"


Instance: TypeAlias = Key | Made | None
"""A value in a match: a class, an operator that the rule writes, or an operand that is left out."""


@dataclass(frozen=True, slots=True)
class Match:
    """One match of a rule: what it makes equal, left side first, and all that it makes.

    The two of each of `given` are equal by what was before: a premise of the match.  `reads` and
    `writes` are the tensors in rows of relations and functions of rule files.
    """

    rule: str
    edges: tuple[tuple[Instance, Instance], ...]
    made: tuple[Instance, ...]
    given: tuple[tuple[Instance, Instance], ...] = ()
    reads: "tuple[Row, ...]" = ()
    writes: "tuple[Row, ...]" = ()


Row: TypeAlias = tuple[str, tuple[Instance, ...]]
"""The name of a relation or a function, and the tensors in a row of it."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What is about to match in an iteration, in a fixed order; the last is that of the end.

    `classes` are those that were in no moment before, each with a loaded value that it is, or a
    node over classes that come before it.
    """

    phase: str
    iteration: int
    classes: tuple[tuple[Key, ClassId | Made], ...]
    matches: tuple[Match, ...]


def record(done: Saturating) -> list[Moment]:
    """The moments of `done`, which is repeated up to where kernels are made of all its operators.

    Raises `SaturationError` if the e-graph outgrows its bounds where it did not the first time.
    """
    book, schedule, report = done.book(), _repeated(done), done.report
    halts = (Halt(k, p.iterations, p.stop) for k, p in enumerate(report.phases))
    course = Course(report.bans, tuple(halts))
    with no_collection(), prepared(book.texts) as egraph:
        recorder = _Recorder(egraph, _searches(book, report))
        load_view(egraph, done.view)
        budget = replace(done.budget, seconds=inf)
        again = Run(egraph, done.view, book, budget, course, inf, untold, recorder.watch)
        if isinstance(again.schedule(schedule), Course):
            raise SaturationError("the run cannot be repeated: the e-graph outgrew its bounds")
        recorder.write_down("", 0)
        return recorder.moments


_LOST = "this block is not rewritten"


_KERNELS = ("lower", "fusion")


def _repeated(done: Saturating) -> Schedule:
    """The phases that made the result, but for those in the end that only make kernels of it."""
    phases = done.schedule()
    if any(note.startswith(_LOST) for note in done.report.notes):
        phases = tuple(p for p in phases if p.rulesets and set(p.rulesets) <= set(OWN_PHASE))
    kept = [k for k, phase in enumerate(phases, 1) if not set(phase.rulesets).issubset(_KERNELS)]
    return tuple(replace(phase, seconds=inf) for phase in phases[: max(kept, default=0)])


@dataclass(frozen=True, slots=True)
class _Search:
    """What writes down the matches of a direction of a rule; `owner` is the rule, or ``lower``."""

    owner: str
    shown: Shown
    relation: str

    @property
    def texts(self) -> Iterator[str]:
        slots, name = self.shown.slots, self.relation
        yield f"(relation {name} ({' '.join(slot.sort for slot in slots)}))"
        values = f"({' '.join((name, *(slot.text for slot in slots)))})"
        yield f"(ruleset {name}-search)"
        head = f"{self.shown.lets} {values}"
        yield f'(rule ({self.shown.body}) ({head}) :ruleset {name}-search :name "{name}-search")'
        row = f"({' '.join((name, *(f'v{k}' for k in range(len(slots)))))})"
        rule = f"({row}) ((delete {row}))"
        yield f'(rule {rule} :ruleset forget :name "{name}-forget")'


_LOWER = "lower"

CONSTANT = "const-from-value"
"""The rule of the ruleset ``facts`` that equates values."""


def _searches(book: RuleBook, report: Report) -> list[_Search]:
    """Searches for the rules of `book` that matched, by `report`, and for those of ``lower``."""
    declared = reading_of(book).scope.declarations
    matched = {name for phase in report.phases for name in phase.matches}
    found: list[tuple[str, Shown]] = []
    for rule in book.rewrites:
        if matched.intersection(rule.reported):
            every = shown(rule.text(rule.ruleset), rule.reported, declared)
            found += ((rule.name, one) for one in every if one.name in matched)
    for text in book.texts:
        if f":ruleset {_LOWER} " in text:
            name = text.rpartition(':name "')[2].partition('"')[0]
            found += ((_LOWER, one) for one in shown(text, (name,), declared))
    return [_Search(owner, one, f"match-{k}") for k, (owner, one) in enumerate(found)]


class _Recorder:
    """Watches a run of `egraph`."""

    def __init__(self, egraph: EGraph, searches: Sequence[_Search]) -> None:
        self.moments: list[Moment] = []
        self._egraph = egraph
        self._searches = searches
        self._known: set[Key] = set()
        self._constants: set[Made] = set()
        self._steps: dict[tuple[str, ...], list[Command]] = {}
        run_text(egraph, "(ruleset forget)")
        for search in searches:
            for text in search.texts:
                run_text(egraph, text)
        self._forget = egraph.parse_program("(run-schedule (run forget))")

    def watch(self, phase: Phase, iteration: int, rules: Sequence[str]) -> None:
        """Write down what the `rules` are about to match."""
        active = {*rules, *((_LOWER,) if _LOWER in phase.rulesets else ())}
        searches = [s for s in self._searches if s.owner in active]
        if searches:
            run(self._egraph, self._step(tuple(s.relation for s in searches)))
        self.write_down(phase.name, iteration, searches)
        run(self._egraph, self._forget)

    def write_down(self, phase: str, iteration: int, searches: Sequence[_Search] = ()) -> None:
        """Write down what there is, and what the `searches` found."""
        tables = _Snapshot(self._egraph)
        classes = tuple(tables.classes(self._known))
        matches = [match for search in searches for match in tables.matches(search)]
        constants = tables.equal_constants(self._constants)
        self.moments.append(Moment(phase, iteration, classes, (*constants, *matches)))

    def _step(self, relations: tuple[str, ...]) -> list[Command]:
        """The search for all that these relations tell of; new dimensions become canonical."""
        if relations not in self._steps:
            name = f"search/{len(self._steps)}"
            parse, rulesets = self._egraph.parse_program, " ".join(f"{r}-search" for r in relations)
            run(self._egraph, parse(f"(unstable-combined-ruleset {name} {rulesets})"))
            self._steps[relations] = parse(f"(run-schedule (run {name}) (saturate (run dim)))")
        return self._steps[relations]


class _Snapshot(Tables):
    """The database while a match is written down."""

    def classes(self, known: set[Key]) -> Iterator[tuple[Key, ClassId | Made]]:
        """The classes that are not `known`, which they are then."""
        for number, key in sorted(self.loaded.items()):
            if key not in known:
                known.add(key)
                yield key, number
        waiting = list(self._unknown(known))
        while waiting:
            later: list[tuple[Key, str, list[Value]]] = []
            for key, head, inputs in waiting:
                if key in known:
                    continue
                made = self._built(head, inputs)
                if made is not None and all(c in known for c in _classes(made)):
                    known.add(key)
                    yield key, made
                else:
                    later.append((key, head, inputs))
            if len(later) == len(waiting):
                return
            waiting = later

    def _unknown(self, known: set[Key]) -> Iterator[tuple[Key, str, list[Value]]]:
        for head, result in _RESULTS.items():
            for row in self._new(head, lambda value, result=result: Key(result, value) in known):
                yield Key(result, row.output), head, row.inputs

    def equal_constants(self, known: set[Made]) -> Iterator[Match]:
        """What is equal to a constant by the rule `CONSTANT`.

        None of what is `known`, to which it is added.
        """
        for head in (head for head, result in _RESULTS.items() if result == "Tensor"):
            for row in self._new(head, lambda value: value not in self._numbers):
                made, dtype = self._built(head, row.inputs), self.dtype(row.output)
                value = self.scalars[row.output]
                constant = Made(SCALAR, attrs=(("dtype", dtype),), scalar=value)
                if made is not None and made != constant and made not in known:
                    known.add(made)
                    yield Match(CONSTANT, ((made, constant),), (constant,))

    @cached_property
    def _numbers(self) -> set[Value]:
        """The tensors of rank 0 that are known numbers."""
        return {value for value in self.scalars if self.rank(value) == 0}

    def _new(self, head: str, known: Callable[[Value], bool]) -> list[FrozenRow]:
        """The rows of a constructor, in order, but for those of classes that are `known`."""
        function = self._functions.get(head)
        rows = [row for row in function.rows if not known(row.output)] if function else []
        return sorted(rows, key=lambda row: (row.output, row.inputs))

    def matches(self, search: _Search) -> Iterator[Match]:
        """The matches that `search` wrote down."""
        slots = search.shown.slots
        for row in self.rows(search.relation):
            values = dict(zip(slots, row.inputs, strict=True))

            def part(of: Part | tuple[Part, ...], values: dict[Slot, Value] = values) -> Any:
                match of:
                    case Slot(sort=sort):
                        return self._value(sort, values[of])
                    case Template(head="unstable-app", args=(function, *args)):
                        head, bound = part(function)
                        return built(head, [*bound, *map(part, args)])
                    case Template(head=head, args=args):
                        return built(head, [part(arg) for arg in args])
                    case tuple():
                        return tuple(map(part, of))

            edges = tuple((part(a), part(b)) for a, b in search.shown.edges)
            given = tuple((part(a), part(b)) for a, b in search.shown.given)
            made = tuple(map(part, search.shown.made))
            reads, writes = (
                tuple((name, tuple(_flat(map(part, parts)))) for name, parts in rows)
                for rows in (search.shown.reads, search.shown.writes)
            )
            yield Match(search.shown.name, edges, made, given, reads, writes)

    def _built(self, head: str, inputs: Sequence[Value]) -> Made | None:
        return built(head, [self._value(s, v) for s, v in zip(_SORTS[head], inputs, strict=True)])

    def _value(self, sort: str, value: Value) -> Any:
        match sort:
            case "Tensor" if value in self._none:
                return None
            case "Tensor" | "Kernel" | "Tuple":
                return Key(sort, value)
            case "Unary" | "Binary" | "Ternary" | "Reduction":
                head, bound = self._egraph.value_to_function(value)
                given = zip(_SORTS[head], bound, strict=False)
                return head, [self._value(s, v) for s, v in given]
            case _:
                return self.decode(sort, value)


_SORTS = {d.name: [p.sort for p in d.params] for d in vocabulary_table()}
_RESULTS = {
    d.name: d.result
    for d in vocabulary_table()
    if d.kind == "constructor"
    and d.result in ("Tensor", "Kernel", "Tuple")
    and d.name not in ("Value", "TupleValue", "R.none")
}


def built(head: str, args: Sequence[Any]) -> Made | None:
    """The operator that rules write ``(head args..)``; ``None`` for the one that is left out."""
    match head, args:
        case "R.none", _:
            return None
        case "Leaf", (key,):
            return Made(LEAF, key=key)
        case "R.const", (value, dtype):
            return Made(SCALAR, attrs=(("dtype", dtype),), scalar=value)
        case "Opaque", (key, operands):
            return Made(OPAQUE, tuple(operands), key=key)
        case "Whole", (whole,):
            return Made(WHOLE, (whole,))
        case "R.tuple_get", (whole, index):
            return Made(TUPLE_GET, (whole,), (("index", index),))
        case "K.store", (kernel,):
            return Made(STORE, (kernel,))
        case "K.load", (tensor,):
            return Made(LOAD, (tensor,), sort="kernel")
        case _:
            return _operator(head, args)


def _operator(head: str, args: Sequence[Any]) -> Made:
    letter, _, name = head.partition(".")
    traits = operators()[name]
    op, count = traits.op, len(traits.op.operands)
    children = tuple(
        ShapeStructInfo(arg, len(arg)) if operand.kind == "shape" else arg
        for operand, arg in zip(op.operands, args[:count], strict=True)
    )
    pairs = zip(op.attrs, args[count:], strict=True)
    attrs = tuple((attr.name, meant(attr, value)) for attr, value in pairs)
    result: Sort = "tuple" if traits.makes_tuple else "tensor"
    return Made(name, children, attrs, sort="kernel" if letter == "K" else result)


def _flat(parts: Iterable[Any]) -> Iterator[Instance]:
    for part in parts:
        if isinstance(part, tuple) and not isinstance(part, Key):
            yield from part
        else:
            yield part


def _classes(made: Made) -> Iterator[Key]:
    for child in made.children:
        if isinstance(child, Key):
            yield child
        elif isinstance(child, tuple):
            yield from (c for c in child if isinstance(c, Key))
