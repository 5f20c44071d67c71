"""Rules that are tried with their families, on programs like those of file tests."""

from collections import Counter
from dataclasses import dataclass, replace
from random import Random

from relax_egraph.egraph.rulebook import RuleBook
from relax_egraph.egraph.trial import Trial, try_families
from relax_egraph.verify.cases import Case, query_of
from relax_egraph.verify.compare import Wrong, compare
from relax_egraph.verify.draw import draw_instance
from relax_egraph.verify.problem import Contradiction, problem_of
from relax_egraph.verify.program import Program
from relax_egraph.verify.query import signatures_of
from relax_egraph.verify.verdict import Verdict

_INSTANCES = 24
_ATTEMPTS = 120
_FLOATS = ("float32", "float32", "float64")


@dataclass(frozen=True, slots=True)
class InCase:
    """What programs like a case's show, with all rules of its families."""

    program: Program
    trial: Trial
    compared: set[int]
    unsound: Wrong | None

    @staticmethod
    def of(book: RuleBook, case: Case, random: Random) -> "InCase | None":
        """The same, of programs that are drawn; ``None`` if none is found."""
        families = tuple(f for f in case.families if f in book.families)
        whole = RuleBook(families, book.user, fast_math=True)
        program = Program(signatures_of(whole))
        refused: Counter[str] = Counter()
        for _ in range(_ATTEMPTS):
            if len(program.instances) == _INSTANCES:
                break
            try:
                query = query_of(case, program.signatures, random)
                problem = problem_of(query, program.signatures, random)
            except Contradiction:
                continue
            drawn = draw_instance(problem, whole.rewrites, random, refused, dtypes=_FLOATS)
            if drawn is not None:
                program.add(drawn)
        if not program.instances:
            return None
        trial = try_families(whole, "\n".join(program.text))
        compared, wrong = compare(program, trial, random)
        unsound = (w for w in wrong if w.difference.need == "unsound")
        return InCase(program, trial, compared, next(unsound, None))

    def added_to(self, verdict: Verdict) -> Verdict:
        """`verdict` with what is shown of its rule."""
        name = verdict.rule
        matches = sum(n for r, n in self.trial.matches.items() if r.rstrip("=><") == name)
        count = min(matches, len(self.compared))
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
