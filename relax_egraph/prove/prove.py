"""Proves that both sides of a rule are equal for all extents, in every general instance."""

from dataclasses import dataclass, field, replace
from time import process_time

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Direction, Rule
from relax_egraph.prove.attributes import Open
from relax_egraph.prove.bindings import Unbound
from relax_egraph.prove.choices import Choices
from relax_egraph.prove.comparison import Comparing, NotProven
from relax_egraph.prove.dtypes import dtypes_of
from relax_egraph.prove.effort import PASSES, Pass, TooSlow, passes
from relax_egraph.prove.induction import shown
from relax_egraph.prove.instances import (
    NONE,
    UNFORESEEN,
    equations_of,
    every_run,
    general,
    rank_of_images,
)
from relax_egraph.prove.matching import Matching
from relax_egraph.prove.nodes import Leaf, Value, shape_of
from relax_egraph.prove.questions import Record, recorded
from relax_egraph.prove.reading import NotExpressible
from relax_egraph.prove.typing import IllFormed
from relax_egraph.prove.unfolding import Recursive, Unfolded, unfolded
from relax_egraph.prove.vacuous import Found, missing
from relax_egraph.prove.verdict import Status, Verdict
from relax_egraph.prove.witness import may_be_refuted, witness


class Refuted(Exception):
    """Both sides differ for the operands that the message shows."""


@dataclass
class Counts:
    """What the proof of one rule took, in all passes that came to an end."""

    found: Found = field(default_factory=Found)
    queries: int = 0
    ranks: set[int] = field(default_factory=set[int])
    meanings: dict[str, None] = field(default_factory=dict[str, None])

    @property
    def forms(self) -> int:
        """The number of general instances."""
        return sum(self.found.values())

    def add(self, other: "Counts") -> None:
        """Add what one more pass took."""
        for way, count in other.found.items():
            self.found[way] = self.found.get(way, 0) + count
        self.queries += other.queries
        self.ranks |= other.ranks
        self.meanings |= other.meanings


def prove(rule: Rule, book: RuleBook) -> Verdict:
    """The verdict on one rule, for operands of as many axes as there is time for."""
    begin = process_time()
    verdict = _deepest(rule, book)
    if verdict.status == "proven" and verdict.meanings:
        verdict = _resting(verdict, book)
    return replace(verdict, seconds=process_time() - begin)


def _deepest(rule: Rule, book: RuleBook) -> Verdict:
    """The verdict of all passes that come to an end, or of one that finds what is not proven."""
    whole, most = Counts(), -1
    record, known = recorded() or Record(), Record()
    for one in passes(PASSES, max((rank_of_images(d) for d in rule.directions), default=0)):
        counts = Counts()
        try:
            status, reason, differs = _outcome(rule, book, counts, one)
        except TooSlow:
            record.become(known)
            break
        whole.add(counts)
        if status != "proven":
            return replace(_verdict(rule, status, whole, reason), differs=differs)
        most, one.is_empty = one.ranks, not counts.forms
        known.become(record)
    reason = missing(whole.found) if whole.forms else NONE
    if reason and most < PASSES[-1][0]:
        return _verdict(rule, "not proven", whole, "it has too many general instances")
    return _verdict(rule, "not proven" if reason else "proven", whole, reason)


def _verdict(rule: Rule, status: Status, counts: Counts, reason: str = "") -> Verdict:
    seen, meanings = tuple(sorted(counts.ranks)), (*counts.meanings,)
    return Verdict(rule, status, reason, seen, counts.forms, counts.queries, meanings=meanings)


def _resting(verdict: Verdict, book: RuleBook) -> Verdict:
    """A proof that assumes meanings: it is one if these are shown, of operands of these ranks."""
    rests_on = shown(verdict.meanings, book, verdict.rule.float_class == "exact")
    if record := recorded():
        for meaning in rests_on:
            record.add(meaning.record)
    for meaning in rests_on:
        if meaning.missing:
            reason = f"the meaning of {meaning.name} is not shown of {meaning.missing}"
            return replace(verdict, status="not proven", reason=reason)
    most = min(meaning.ranks for meaning in rests_on)
    ranks = tuple(rank for rank in verdict.ranks if rank <= most)
    if verdict.ranks and not ranks:
        reason = f"what it rests on is shown of no more than {most} axes"
        return replace(verdict, status="not proven", reason=reason)
    return replace(verdict, ranks=ranks, meanings=tuple(meaning.name for meaning in rests_on))


def _outcome(rule: Rule, book: RuleBook, counts: Counts, one: Pass) -> tuple[Status, str, bool]:
    """The outcome of one pass, why it is not proven, and whether the sides differ in a case."""
    try:
        for direction in rule.directions:
            for way in unfolded(direction, book):
                counts.meanings |= dict.fromkeys(way.meanings)
                _prove_way(direction, way, book, counts, one)
    except Refuted as example:
        return "refuted", str(example), False
    except NotExpressible as reason:
        return "not expressible", str(reason), False
    except (NotProven, IllFormed) as reason:
        return "not proven", str(reason), True
    except (Open, Recursive, Unbound) as reason:
        return "not proven", str(reason), False
    except UNFORESEEN as problem:
        return "not proven", f"the proof ends in {type(problem).__name__}: {problem}", False
    return "proven", "", False


def _prove_way(
    direction: Direction, way: Unfolded, book: RuleBook, counts: Counts, one: Pass
) -> None:
    stated, key = direction.rule.float_class, (direction.name, way)
    counts.found.setdefault(key, 0)
    pairs = equations_of(direction)
    terms = tuple(b for _, b in pairs)
    dtypes = dtypes_of([*way.facts, *(t for pair in pairs for t in pair)])

    def make(matching: Matching) -> tuple[Matching, list[tuple[Value, Value]]]:
        return matching, [(matching.operand(a), matching.right(b)) for a, b in pairs]

    def run(choices: Choices) -> None:
        one.effort.spend(1)
        matching, made = general(way.facts, terms, choices, dtypes, one, make)
        counts.found[key] += 1
        comparing = Comparing(matching, one.effort, stated == "exact")
        for where, condition in matching.typing.needed:
            comparing.require(where, condition)
        for left, right in made:
            try:
                comparing.compare(left, right)
            except NotProven:
                if may_be_refuted(direction.rule, way, book) and (
                    found := witness(matching, left, right, stated)
                ):
                    raise Refuted(str(found)) from None
                raise
        comparing.record()
        counts.queries += comparing.solver.count
        operands = (v for v in matching.values.values() if isinstance(v, Leaf))
        counts.ranks |= {len(shape_of(v)) for v in operands}

    for _ in every_run(run, way.facts, (t for pair in pairs for t in pair), one):
        pass
