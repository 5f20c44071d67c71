"""Recording of a saturation: a second run that records all matches of each rule.

Before each iteration, a search rule with the premises of each rule adds its matches to a relation.
They are over classes as the rule sees them, before the unions of the iteration.  The relation is
read and emptied, so that the run is the same as without recording.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from relax_egraph.egraph.bindings import EGraph
from relax_egraph.egraph.commands import Command, run, run_text
from relax_egraph.egraph.encoding.bulk import load_view
from relax_egraph.egraph.encoding.prepared import prepared
from relax_egraph.egraph.readback.tables import Key
from relax_egraph.egraph.recording.snapshot import Made, Match, Snapshot
from relax_egraph.egraph.recording.template_reader import rule_templates
from relax_egraph.egraph.recording.templates import RuleTemplates
from relax_egraph.egraph.rulebook.book import OWN_PHASE, RuleBook
from relax_egraph.egraph.saturation.course import Course, Halt
from relax_egraph.egraph.saturation.in_process import Saturating, untold
from relax_egraph.egraph.saturation.report import Report
from relax_egraph.egraph.saturation.run import Run
from relax_egraph.egraph.saturation.schedule import Phase, Schedule
from relax_egraph.egraph.view import ClassId
from relax_egraph.errors import SaturationError
from relax_egraph.ir.collection import no_collection


@dataclass(frozen=True, slots=True)
class Moment:
    """The matches of an iteration in a fixed order, before they are applied.

    `classes` are the new classes since the previous moment, each with its loaded value, or a node
    over classes before it.  The last moment is the one after the last iteration.
    """

    phase: str
    iteration: int
    classes: tuple[tuple[Key, ClassId | Made], ...]
    matches: tuple[Match, ...]


def record(done: Saturating) -> list[Moment]:
    """The moments of `done`, which is repeated without its final phases of lowering and fusion.

    Raises `SaturationError` if the e-graph outgrows bounds that it kept the first time.
    """
    book, schedule, report = done.book(), _repeated(done), done.report
    halts = (Halt(k, p.iterations, p.stop) for k, p in enumerate(report.phases))
    course = Course(report.bans, tuple(halts))
    with no_collection(), prepared(book.program) as egraph:
        recorder = _Recorder(egraph, _searches(book, report))
        load_view(egraph, done.view, book.absent)
        budget = replace(done.budget, seconds=inf)
        again = Run(egraph, done.view, book, budget, course, inf, untold, recorder.watch)
        if isinstance(again.schedule(schedule), Course):
            raise SaturationError("the run cannot be repeated: the e-graph outgrew its bounds")
        recorder.write_down("", 0)
        return recorder.moments


_LOST = "this block is not rewritten"


_KERNELS = ("lower", "fusion")


def _repeated(done: Saturating) -> Schedule:
    """The phases of the run, without final phases that only lower and fuse kernels."""
    phases = done.schedule()
    if any(note.startswith(_LOST) for note in done.report.notes):
        phases = tuple(p for p in phases if p.rulesets and set(p.rulesets) <= set(OWN_PHASE))
    kept = [k for k, phase in enumerate(phases, 1) if not set(phase.rulesets).issubset(_KERNELS)]
    return tuple(replace(phase, seconds=inf) for phase in phases[: max(kept, default=0)])


@dataclass(frozen=True, slots=True)
class _Search:
    """The search rule for a direction of a rule; `owner` is the rule's name, or ``lower``."""

    owner: str
    templates: RuleTemplates
    relation: str

    @property
    def texts(self) -> Iterator[str]:
        slots, name = self.templates.slots, self.relation
        yield f"(relation {name} ({' '.join(slot.sort for slot in slots)}))"
        values = f"({' '.join((name, *(slot.text for slot in slots)))})"
        yield f"(ruleset {name}-search)"
        head = f"{self.templates.lets} {values}"
        options = f':ruleset {name}-search :name "{name}-search"'
        yield f"(rule ({self.templates.body}) ({head}) {options})"
        row = f"({' '.join((name, *(f'v{k}' for k in range(len(slots)))))})"
        rule = f"({row}) ((delete {row}))"
        yield f'(rule {rule} :ruleset engine/forget :name "{name}-forget")'


_LOWER = "lower"


def _searches(book: RuleBook, report: Report) -> list[_Search]:
    """Searches for the rules of `book` with matches in `report`, and for lowering rules."""
    declared = book.reading.scope.declarations
    matched = {name for phase in report.phases for name in phase.matches}
    templates: list[tuple[str, RuleTemplates]] = []
    for rule in book.rewrites:
        if matched.intersection(rule.reported):
            every = rule_templates(rule, declared)
            templates += ((rule.name, one) for one in every if one.name in matched)
    for rule in book.lowering:
        templates += ((_LOWER, one) for one in rule_templates(rule, declared))
    return [_Search(owner, one, f"engine/match-{k}") for k, (owner, one) in enumerate(templates)]


class _Recorder:
    """The watcher of a run of `egraph`, which collects the moments."""

    def __init__(self, egraph: EGraph, searches: Sequence[_Search]) -> None:
        self.moments: list[Moment] = []
        self._egraph = egraph
        self._searches = searches
        self._known: set[Key] = set()
        self._constants: set[Made] = set()
        self._steps: dict[tuple[str, ...], list[Command]] = {}
        run_text(egraph, "(ruleset engine/forget)")
        for search in searches:
            for text in search.texts:
                run_text(egraph, text)
        self._forget = egraph.parse_program("(run-schedule (run engine/forget))")

    def watch(self, phase: Phase, iteration: int, rules: Sequence[str]) -> None:
        """Record the matches of `rules` before they are applied."""
        active = {*rules, *((_LOWER,) if _LOWER in phase.rulesets else ())}
        searches = [s for s in self._searches if s.owner in active]
        if searches:
            run(self._egraph, self._step(tuple(s.relation for s in searches)))
        self.write_down(phase.name, iteration, searches)
        run(self._egraph, self._forget)

    def write_down(self, phase: str, iteration: int, searches: Sequence[_Search] = ()) -> None:
        """Record a moment: the new classes, and the matches of `searches`."""
        tables = Snapshot(self._egraph)
        classes = tuple(tables.classes(self._known))
        matches = [
            match
            for search in searches
            for match in tables.matches(search.templates, search.relation)
        ]
        constants = tables.equal_constants(self._constants)
        self.moments.append(Moment(phase, iteration, classes, (*constants, *matches)))

    def _step(self, relations: tuple[str, ...]) -> list[Command]:
        """The commands that fill the match `relations` and make new dimensions canonical."""
        if relations not in self._steps:
            name = f"engine/search/{len(self._steps)}"
            parse, rulesets = self._egraph.parse_program, " ".join(f"{r}-search" for r in relations)
            run(self._egraph, parse(f"(unstable-combined-ruleset {name} {rulesets})"))
            self._steps[relations] = parse(f"(run-schedule (run {name}) (saturate (run dim)))")
        return self._steps[relations]
