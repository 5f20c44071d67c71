"""`why_not`: run the rules, then search the saturated e-graph for partial matches of one rule."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from relax_egraph.base.parameters import NAME, optional, takes
from relax_egraph.egraph.encoding.narrowing import Narrowing
from relax_egraph.egraph.engine import (
    Budget,
    Report,
    before_weights,
    saturate,
)
from relax_egraph.egraph.readback.tables import Key
from relax_egraph.egraph.recording.database import Database, saturated_database
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.saturation.course import Course
from relax_egraph.egraph.view import ClassId, View
from relax_egraph.errors import IllFormed
from relax_egraph.ir import assumptions
from relax_egraph.ir.assumptions import assuming
from relax_egraph.ir.called import operators_for
from relax_egraph.ir.collection import no_collection
from relax_egraph.ir.depth import deep
from relax_egraph.ir.module import MODULE, IRModule
from relax_egraph.ir.tolerance import tolerance_of
from relax_egraph.optimize.explanation import Explanation
from relax_egraph.optimize.prepare import operators_in, prepare
from relax_egraph.optimize.run import run
from relax_egraph.optimize.session import OPTIONS, Session, check_symbols
from relax_egraph.passes.check_assumptions import bound_symbols
from relax_egraph.reasons.kernels import running_in
from relax_egraph.reasons.no_block import NO_BLOCK
from relax_egraph.reasons.why_not.answer import Near, WhyNot
from relax_egraph.reasons.why_not.blocks import Part, different, parts_in
from relax_egraph.reasons.why_not.candidates import deepest, described, full_matches
from relax_egraph.reasons.why_not.naming import Names
from relax_egraph.reasons.why_not.places import target_at
from relax_egraph.reasons.why_not.plan import plan_of
from relax_egraph.reasons.why_not.rules import Rules
from relax_egraph.reasons.why_not.search import Search
from relax_egraph.reasons.why_not.verdict import NEAREST, RegionResult, verdict
from relax_egraph.reasons.why_not.wording import Words
from relax_egraph.rules import FACTS, RULES, Given


@takes(rule=NAME, module=MODULE, at=optional(NAME), rules=RULES, **OPTIONS)
@deep(IllFormed, "the module is nested too deeply")
@no_collection()
def why_not(
    rule: str,
    module: IRModule,
    at: str | None = None,
    *,
    rules: Sequence[Given] = (),
    **options: Any,
) -> WhyNot:
    """Explain why `rule` did not match in `module`, or did not match at the value `at`.

    `at` is a variable of a dataflow block, ``"lv3"``, or of one function, ``"main.lv3"``; the
    number of a binding in the dataflow blocks, ``"3"`` or ``"-1"``; or a fused function of the
    result, ``"fused_add_relu"``, for all values that it replaces.

    The rules run as in `optimize` with the same options, up to the last phase of `rule`.  The
    search for the rule is in the e-graph of that moment.  If the rule fired, its gain is the
    difference of two optimizations.

    Raises ``ValueError`` if there is no such rule or value, or no operator without effects in the
    module, and the errors of `optimize`.
    """
    with operators_for(module).in_force():
        return _answered(rule, module, at, Session(rules, **options))


def _answered(rule: str, module: IRModule, at: str | None, session: Session) -> WhyNot:
    check_symbols(module, session)
    known = assumptions.parse(session.assume)
    prepared = prepare(module, session, known).module
    parts = list(parts_in(prepared))
    if not parts:
        raise ValueError(NO_BLOCK)
    bounds = {name: tolerance_of(name, f.attrs) for name, f in prepared.relax_functions()}
    bounded = any(bounds.values())
    every = Rules.of(
        *(
            session.read_rules(),
            session.without,
            session.fast_math,
            bounded,
            operators_in(prepared),
        ),
        session.schedule,
    )
    info = every.named(rule)

    @cache
    def best(*left_out: str) -> Explanation:
        return run(module, replace(session, without=(*session.without, *left_out)))

    target = None if at is None else target_at(at, parts, lambda: running_in(best()))
    chosen = different(parts, {}) if target is None else different([*target.names], target.names)
    narrowing = Narrowing()
    results: list[RegionResult] = []
    for part, uses in chosen:
        with assuming(known.about(bound_symbols(part.definition))):
            names = None if target is None else target.names[part]
            question = _Question(info, every, session.budget or Budget(), session.isolate, names)
            result = question.result(part, narrowing, bounds[part.function])
            results.append(replace(result, uses=uses))
    answer = verdict(info, every, target and target.name, results)
    if answer.kind != "fired" or info.ruleset in FACTS:
        return answer
    having, lacking = best(), best(info.name)
    return replace(answer, costs=(having.cost, lacking.cost), assumed=having.assumed)


@dataclass(frozen=True, slots=True)
class _Question:
    """The question for each e-graph: does `rule` match, at the values `names` or anywhere."""

    rule: Rule
    rules: Rules
    budget: Budget
    isolate: bool | None
    names: Sequence[str] | None

    def result(self, part: Part, narrowing: Narrowing, tolerance: float) -> RegionResult:
        """The matches in the e-graph of `part`, whose weights may be off by `tolerance`."""
        phases, view, variables = self.rules.until(self.rule), part.view, part.variables
        first, rest = before_weights(phases) if tolerance else (phases, ())
        if rest and first:
            done = saturate(view, self.rules.run, self.budget, first, self.isolate)
            reached = replace(done.view, leaves=view.leaves, opaque=view.opaque)
            view = narrowing.of(reached, tolerance)
            variables = {n: done.became[c] for n, c in variables.items() if c in done.became}
            first = rest
        course = Course()
        if self.rules.run.user and self.isolate is not False:
            done = saturate(view, self.rules.run, self.budget, first, True)
            if lost := [note for note in done.report.notes if "not rewritten" in note]:
                return RegionResult(part.function, done.report, lost=lost[0])
            course = Course(bans=done.report.bans)
        reading = partial(self._read, part.function, view, variables)
        return saturated_database(view, self.rules.run, self.budget, first, course, reading)

    def _read(
        self,
        function: str,
        view: View,
        variables: Mapping[str, ClassId],
        database: Database,
        report: Report,
    ) -> RegionResult:
        search = Search(database, self.rules.book)
        targets = {n: variables[n] for n in self.names or () if n in variables}
        keys = {name: database.loaded[c] for name, c in {**targets, **variables}.items()}
        names = Names(database, dict(enumerate(view.leaves)), keys)  # names of targets go first
        words = Words(search, names, self.rules.excluded)
        at = None
        if self.names is not None:
            at = [key for c in dict.fromkeys(targets.values()) for key in _keys(database, c)]
        about: dict[Key | None, None] = {}
        near: list[tuple[tuple[int, int, int], Near]] = []
        for pattern in self.rule.directions:
            plan = plan_of(pattern)
            about |= dict.fromkeys(full_matches(search, plan))
            partials = [p for p in deepest(search, plan, at) if not p.matches][:NEAREST]
            near += [(p.weight, described(words, p, function)) for p in partials]
        matches = report.matches
        return RegionResult(
            function,
            report,
            sum(matches.get(name, 0) for name in self.rule.reported)
            or len(about) * (self.rule.ruleset in FACTS),
            tuple("some value" if key is None else words.names.of(key) for key in about),
            at is not None and any(key in about for key in at),
            tuple(near),
            cut=search.cut,
        )


def _keys(database: Database, number: ClassId) -> list[Key]:
    """The class of a value of the program, and the kernel classes that store it."""
    key = database.loaded[number]
    return [key, *(Key("Kernel", k) for k, t in database.memory.items() if t == key.value)]
