"""Trials of rules together with their families, on programs like those of file tests."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from relax_egraph.egraph.recording.trial import Trial, try_families
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.rulebook.vocabulary import Declaration
from relax_egraph.verify.cases import Case, query_of
from relax_egraph.verify.instances.draw import draw_instance
from relax_egraph.verify.instances.problem import Contradiction
from relax_egraph.verify.instances.resolve import problem_of
from relax_egraph.verify.values.claims import truthful
from relax_egraph.verify.values.compare import Wrong, compare, stated
from relax_egraph.verify.values.program import Program
from relax_egraph.verify.values.tolerance import ORDER
from relax_egraph.verify.verdict import Counterexample, Verdict

_ATTEMPTS = 8
"""Attempts for each instance, half with other extents and half with those of the case."""

_FLOATS = ("float32", "float32", "float64", "float16")


@dataclass(frozen=True, slots=True)
class InCase:
    """A trial of all rules of a case's families on programs like that of the case."""

    program: Program
    trial: Trial
    compared: set[int]
    wrong: Wrong | None

    @staticmethod
    def of(
        book: RuleBook, case: Case, wanted: Collection[str], random: Random, count: int
    ) -> "InCase | None":
        """A trial of up to `count` programs for the rules `wanted`; ``None`` without a program."""
        program = Program(book.declarations)
        families = tuple(f for f in case.families if f in book.families)
        rules = tuple(r for r in book.rules if r.ruleset in families or r.name in wanted)
        refused: Counter[str] = Counter()
        for attempt in range(_ATTEMPTS * count):
            if len(program.instances) == count:
                break
            try:
                dtype, general = random.choice(_FLOATS), attempt < _ATTEMPTS * count // 2
                query = query_of(case, program.declarations, random, dtype, general)
                problem = problem_of(query, program.declarations, random)
            except Contradiction:
                continue
            drawn = draw_instance(problem, rules, random, refused, dtypes=(dtype,))
            if drawn is not None and truthful(drawn, program.declarations, ("ordinary",)):
                program.add(drawn)
        if not program.instances:
            return None
        enough = {
            name: count if _is_of_tensors(name, rules, program.declarations) else 1
            for name in wanted
        }
        trial = try_families(book, families, program.actions, enough)
        compared, wrong = compare(program, trial, random)
        matched = (stated(r) for r in rules if trial.matches.get(r.name))
        allowed = max(map(ORDER.index, matched), default=0)
        exceeding = (w for w in wrong if ORDER.index(w.difference.need) > allowed)
        return InCase(program, trial, compared, next(exceeding, None))

    def added_to(self, verdict: Verdict) -> Verdict:
        """`verdict` with the matches and the differences of this trial."""
        name = verdict.rule
        matches = self.trial.matches.get(name, 0)
        instances = len(self.compared)
        rules, declarations = self.program.instances[0].rules, self.program.declarations
        shared = not _is_of_tensors(name, rules, declarations)
        count = instances * bool(matches) if shared else min(matches, instances)
        if not count:
            return verdict
        infos = [
            i.info(v)
            for i in self.program.instances
            for v in i.problem.shapes
            if v in i.problem.needed
        ]
        needs = self.wrong.difference.need if self.wrong else verdict.needs
        return replace(
            verdict,
            fired=verdict.fired + count,
            dtypes=tuple(sorted({*verdict.dtypes, *(str(i.dtype) for i in infos)})),
            ranks=tuple(sorted({*verdict.ranks, *(i.ndim for i in infos)})),
            alone=False,
            reason=self.trial.conflict or "",
            needs="unsound" if self.trial.conflict else needs,
            counterexample=self.example(name),
        )

    def example(self, name: str) -> Counterexample | None:
        """The wrong instance as a counterexample to the rule `name`."""
        if self.wrong is None:
            return None
        instance = self.wrong.seen
        pattern = next(p for r in instance.rules if r.name == name for p in r.directions)
        return Counterexample(pattern, instance, self.wrong.difference)


def _is_of_tensors(
    name: str, rules: Sequence[Rule], declarations: Mapping[str, Declaration]
) -> bool:
    """Whether a rule acts on tensors, and not on attributes that all instances share."""
    patterns = [p for rule in rules if rule.name == name for p in rule.directions]
    heads = {row.head for p in patterns for row in p.rows}
    sorts = {s for head in heads if head in declarations for s in declarations[head].sorts}
    return any(p.unites for p in patterns) or "Tensor" in sorts
