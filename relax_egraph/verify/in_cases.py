"""Rules that are tried with their families, on programs like those of file tests."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from random import Random

from relax_egraph.egraph.rulebook import RuleBook
from relax_egraph.egraph.trial import Trial, try_families
from relax_egraph.verify.cases import Case, query_of
from relax_egraph.verify.compare import Wrong, compare
from relax_egraph.verify.draw import draw_instance
from relax_egraph.verify.problem import Contradiction, problem_of
from relax_egraph.verify.program import Program
from relax_egraph.verify.query import patterns_of, signatures_of
from relax_egraph.verify.verdict import Verdict

_INSTANCES = 24
_ATTEMPTS = 100
"""Half of these are with other extents; the others have those of the case."""

_FLOATS = ("float32", "float32", "float64")


@dataclass(frozen=True, slots=True)
class InCase:
    """What programs like a case's show, with all rules of its families."""

    program: Program
    trial: Trial
    compared: set[int]
    unsound: Wrong | None

    @staticmethod
    def of(book: RuleBook, case: Case, wanted: Collection[str], random: Random) -> "InCase | None":
        """The same, of programs that are drawn, for rules that are `wanted`; ``None`` if none is."""
        program = Program(signatures_of(book))
        families = tuple(f for f in case.families if f in book.families)
        rules = tuple(r for r in book.rewrites if r.ruleset in families)
        refused: Counter[str] = Counter()
        for attempt in range(_ATTEMPTS):
            if len(program.instances) == _INSTANCES:
                break
            try:
                query = query_of(case, program.signatures, random, attempt < _ATTEMPTS // 2)
                problem = problem_of(query, program.signatures, random)
            except Contradiction:
                continue
            drawn = draw_instance(problem, rules, random, refused, dtypes=_FLOATS)
            if drawn is not None:
                program.add(drawn)
        if not program.instances:
            return None
        trial = try_families(book, families, "\n".join(program.text), wanted, _INSTANCES)
        compared, wrong = compare(program, trial, random)
        unsound = (w for w in wrong if w.difference.need == "unsound")
        return InCase(program, trial, compared, next(unsound, None))

    def premises(self, name: str) -> bool:
        """Whether a rule matches anything: one that does not is for all instances."""
        rules = (r for i in self.program.instances[:1] for r in i.rules if r.name == name)
        return any(p.left or p.facts for r in rules for p in patterns_of(r))

    def added_to(self, verdict: Verdict) -> Verdict:
        """`verdict` with what is shown of its rule."""
        name = verdict.rule
        matches = sum(n for r, n in self.trial.matches.items() if r.rstrip("=><") == name)
        instances = len(self.compared)
        count = min(matches, instances) if self.premises(name) else instances * bool(matches)
        if not count:
            return verdict
        infos = [
            i.info(v)
            for i in self.program.instances
            for v in i.problem.shapes
            if v in i.problem.needed
        ]
        return replace(
            verdict,
            fired=verdict.fired + count,
            dtypes=tuple(sorted({*verdict.dtypes, *(str(i.dtype) for i in infos)})),
            ranks=tuple(sorted({*verdict.ranks, *(i.ndim for i in infos)})),
            alone=False,
            reason=self.trial.conflict or (str(self.unsound) if self.unsound else ""),
            needs="unsound" if self.unsound or self.trial.conflict else verdict.needs,
        )
