"""Bisection of wrong results: the smallest sets of rules that change what a program computes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from relax_egraph.base.parameters import NAME, NOT_NEGATIVE, optional, takes
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.errors import RelaxEgraphError, RunError, TextError
from relax_egraph.ir.module import MODULE, IRModule
from relax_egraph.optimize.explanation import Explanation
from relax_egraph.optimize.session import OPTIONS
from relax_egraph.reasons.bisected import Bisected, By, Culprit, Failure, Raised
from relax_egraph.reasons.difference import Allowed, Difference, rounding
from relax_egraph.reasons.minimize import Outcome, minimal
from relax_egraph.reasons.progress import PROGRESS, Progress, tries
from relax_egraph.reasons.restricted import Restricted
from relax_egraph.reasons.running import INPUTS, Inputs, arguments, built, interpreted, meant
from relax_egraph.rules import RULES, Given
from relax_egraph.verify.check import check_rules

_MOST_SETS = 8
"""The most sets of rules that a search returns.  Sets are disjoint."""


@takes(
    module=MODULE,
    inputs=INPUTS,
    rules=RULES,
    function=NAME,
    rtol=optional(NOT_NEGATIVE),
    atol=optional(NOT_NEGATIVE),
    progress=PROGRESS,
    **OPTIONS,
)
def bisect(
    module: IRModule,
    inputs: Inputs,
    rules: Sequence[Given] = (),
    *,
    function: str = "main",
    rtol: float | None = None,
    atol: float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Bisected:
    """Find the smallest sets of rules with which `function` of `module` is wrong on `inputs`.

    `rules` and `options` are arguments of `optimize`.  Candidates are all rules that matched, the
    user's included.  A set is minimal: without any one of its rules the result is right.  Rules
    that are harmless alone and wrong together form one set.  The search then goes on among the
    other candidates.

    The expected result is that of the program as written, from the numpy reference in the program's
    own dtypes.  A wrong rule is an equation that does not hold, so the reference shows it, too, in
    a hundredth of the time that a build takes.  Programs are built only if the reference shows no
    difference or cannot run the program; the search then finds rules that lead to a wrong kernel.

    Results may differ by ``atol + rtol * |expected|``.  By default `rtol` is half of the digits of
    the dtype (3e-4 for float32, 0 for integers), and `atol` is `rtol` times an output's largest
    magnitude.  If both are defaults, eight times the rounding of the program as written is added,
    so that sums in another order are within the tolerance.

    An exception with all rules, such as for an unsound rule that the engine notices, is bisected
    likewise.  A try that fails in another way counts as neither right nor wrong.  `progress` is
    called before each try; without it, a terminal or a notebook shows the tries.  Each try runs
    the program with its side effects.

    Raises ``ValueError`` for inputs that the function does not take, a tolerance that is negative
    or not finite, and a module without dataflow blocks; `RunError` if the program as written does
    not run on `inputs`.
    """
    begin = perf_counter()
    args = arguments(module, function, inputs)
    with tries("bisecting", progress) as told:
        restricted = Restricted.of(module, rules, options, told)
        return _bisected(_Tries(restricted, function, args, rtol, atol), begin)


def _bisected(tries: "_Tries", begin: float) -> Bisected:
    failure = tries.with_all_rules()
    exceeds = isinstance(failure, Raised) or failure.exceeds
    sets = _culprits(tries.restricted, _sets(tries) if exceeds else [])
    return Bisected(
        sets=sets,
        failure=failure,
        exceeds=exceeds,
        remedy=_remedy(tries, sets),
        by=tries.by,
        rounding=None if tries.rounding is None else max(tries.rounding, default=0.0),
        candidates=tries.candidates,
        tries=tries.restricted.tries,
        unresolved=tries.unresolved,
        seconds=perf_counter() - begin,
    )


def _sets(tries: "_Tries") -> list[tuple[str, ...]]:
    """Disjoint minimal sets of rules that fail in the same way as all rules."""
    sets: list[tuple[str, ...]] = []
    rest = tries.candidates
    while len(sets) < _MOST_SETS and tries.outcome(rest) == "fails":
        names = minimal(rest, tries.outcome)
        if not names:
            break
        sets.append(names)
        rest = tuple(name for name in rest if name not in names)
    return sets


def _culprits(
    restricted: Restricted, sets: Sequence[tuple[str, ...]]
) -> tuple[tuple[Culprit, ...], ...]:
    """The rules of `sets` with their verdicts, in each set the unsound ones first."""
    if not sets:
        return ()
    session = restricted.session
    book = RuleBook.default([session.read_rules()], session.without, fast_math=True, bounded=True)
    verdicts = {v.rule: v for v in check_rules(book, only=[n for names in sets for n in names])}
    culprits = [[Culprit(restricted.book[n], verdicts[n]) for n in names] for names in sets]
    return tuple(tuple(sorted(one, key=lambda c: not c.is_unsound)) for one in culprits)


def _remedy(tries: "_Tries", sets: Sequence[Sequence[Culprit]]) -> tuple[str, ...]:
    """The rules to leave out for a right result: the unsound ones, or else all of `sets`."""
    every = [culprit for one in sets for culprit in one]
    for culprits in ([c for c in every if c.is_unsound], every):
        names = tuple(culprit.rule.name for culprit in culprits)
        rest = tuple(name for name in tries.candidates if name not in names)
        if names and tries.outcome(rest) == "passes":
            return names
    return ()


@dataclass(slots=True)
class _Tries:
    """Runs of the program with some of the rules, each at most once.

    The run with all rules comes first: it determines the candidates and the expected result.
    """

    restricted: Restricted
    function: str
    args: Sequence[Any]
    rtol: float | None
    atol: float | None
    by: By = "reference"
    rounding: list[float] | None = None
    candidates: tuple[str, ...] = ()
    unresolved: int = 0
    _failure: Failure | None = None
    _allowed: Allowed = field(default=Allowed(()))
    _known: dict[tuple[str, ...], Outcome] = field(default_factory=dict[tuple[str, ...], Outcome])

    def with_all_rules(self) -> Failure:
        """The outcome with all rules: the largest difference, or the exception."""
        module = self.restricted.module
        try:
            expected = interpreted(module, self.function, self.args)
        except RunError:
            self.by = "machine"
            expected = built(module, self.function, self.args)
        if (meaning := meant(module, self.function, self.args)) is not None:
            self.rounding = rounding(expected, meaning)
        self._allowed = Allowed(expected, self.rtol, self.atol, self.rounding or ())
        best = self._optimized(self.restricted.whole)
        self._failure = self._compared(best)
        if self.by == "reference" and _outcome(self._failure, None) == "passes":
            self.by = "machine"
            self._failure = self._compared(best)
        self._known[self.candidates] = _outcome(self._failure, self._failure)
        return self._failure

    def outcome(self, chosen: tuple[str, ...]) -> Outcome:
        """The outcome with the rules `chosen`, in comparison with the failure of all rules."""
        if chosen not in self._known:
            failure = self._compared(self._optimized(lambda: self.restricted.explained(chosen)))
            self._known[chosen] = _outcome(failure, self._failure)
            self.unresolved += self._known[chosen] == "unresolved"
        return self._known[chosen]

    def _optimized(self, optimize: Callable[[], Explanation]) -> IRModule | Raised:
        try:
            explanation = optimize()
        except TextError:
            raise
        except RelaxEgraphError as error:
            self.candidates = self.candidates or tuple(self.restricted.book)
            return _raised(error)
        self.candidates = self.candidates or self.restricted.matched(explanation)
        return explanation.module

    def _compared(self, best: IRModule | Raised) -> Failure:
        if isinstance(best, Raised):
            return best
        run: Callable[[IRModule, str, Sequence[Any]], list[Any]]
        run = interpreted if self.by == "reference" else built
        try:
            return self._allowed.worst(run(best, self.function, self.args))
        except Exception as error:  # whatever goes wrong in building and running is a finding
            return _raised(error)


def _raised(error: Exception) -> Raised:
    return Raised(type(error).__name__, str(error))


def _outcome(failure: Failure, whole: Failure | None) -> Outcome:
    """The outcome of a try, where `whole` is the failure with all rules."""
    match failure, whole:
        case Difference(exceeds=False), _:
            return "passes"
        case Difference(), Difference():
            return "fails"
        case Raised(kind=kind), Raised(kind=same) if kind == same:
            return "fails"
        case _:
            return "unresolved"
