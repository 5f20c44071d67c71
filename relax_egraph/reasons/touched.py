"""The classes of a saturated e-graph that a rule matched."""

from dataclasses import replace
from functools import partial
from math import inf

from relax_egraph.egraph.readback.readback import numbering
from relax_egraph.egraph.readback.tables import Key
from relax_egraph.egraph.recording.database import Database, saturated_database
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.saturation.course import Course, Halt
from relax_egraph.egraph.saturation.in_process import Saturating
from relax_egraph.egraph.saturation.report import Report
from relax_egraph.egraph.view import ClassId
from relax_egraph.optimize.explanation import RegionReport
from relax_egraph.reasons.why_not.deductions import Deductions
from relax_egraph.reasons.why_not.plan import plan_of
from relax_egraph.reasons.why_not.search import Search


def touched(region: RegionReport, rule: Rule) -> frozenset[ClassId]:
    """The classes of ``region.view`` with both sides of `rule`, or with the fact that it deduces.

    The last saturation is repeated to find them.  A rule that did not match touches no class.
    """
    matched = {name for run in region.runs for p in run.report.phases for name in p.matches}
    if matched.isdisjoint(rule.reported):
        return frozenset()
    done = region.runs[-1]
    halts = (Halt(k, p.iterations, p.stop) for k, p in enumerate(done.report.phases))
    course = Course(done.report.bans, tuple(halts))
    budget = replace(done.budget, seconds=inf)
    schedule = tuple(replace(phase, seconds=inf) for phase in done.schedule())
    with done.again():
        reading = partial(_read, done, rule)
        return saturated_database(done.view, done.book(), budget, schedule, course, reading)


def _read(done: Saturating, rule: Rule, database: Database, _: Report) -> frozenset[ClassId]:
    roots = [database.loaded[root] for root in done.view.roots]
    numbers = numbering(roots, database.nodes)
    patterns = rule.directions
    declared = frozenset(done.book().declarations)
    search = Search(database, Deductions(tuple(patterns), declared, frozenset()))
    keys = {
        values.get(name)
        for plan in map(plan_of, patterns)
        for values in search.matches(plan, {})
        for name in plan.focus
    }
    return frozenset(numbers[key] for key in keys if isinstance(key, Key) and key in numbers)
