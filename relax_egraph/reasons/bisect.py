"""Which rules change what a program computes: the fewest that do so together."""

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
from relax_egraph.reasons.restricted import TOLD, Restricted, Told
from relax_egraph.reasons.running import INPUTS, Inputs, arguments, built, interpreted, meant
from relax_egraph.rules import RULES, Given, read
from relax_egraph.verify.check import check_rules

_MOST_SETS = 8
"""So many sets of rules are looked for, each among the rules that are in none before it."""


@takes(
    module=MODULE,
    inputs=INPUTS,
    rules=RULES,
    function=NAME,
    rtol=optional(NOT_NEGATIVE),
    atol=optional(NOT_NEGATIVE),
    told=TOLD,
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
    told: Told | None = None,
    **options: Any,
) -> Bisected:
    """Find the smallest sets of rules with which `function` of `module` is wrong on `inputs`.

    `rules` and `options` are arguments of `optimize`.  Candidates are the rules of the book and the
    user's that matched.  A set is minimal: without any one of its rules the result is right; what
    is harmless alone and wrong together is found as a set.  Once one is found, the others are
    looked through for another.

    What is right is the program as written, run by the numpy reference in its own dtypes.  A wrong
    rule is an equation that does not hold, so the reference shows it, too, in a hundredth of the
    time that building takes; only if it shows nothing, or cannot run the program, are programs
    built: then rules are found that lead to a wrong kernel.

    Results may differ by ``atol + rtol * |expected|``.  By default `rtol` is half of the digits of
    the dtype (3e-4 of float32, 0 of integers), and `atol` that part of an output's largest
    magnitude; if neither is given, rounding that the program as written has by itself is allowed
    eight times.  So what only adds in another order is within it.

    An exception with all rules, such as for an unsound rule that the engine notices, is bisected
    likewise; a try that fails otherwise counts as neither right nor wrong.  `told` hears of each
    try.  The program is run each time, with all that it does besides.

    Raises ``ValueError`` for inputs that the function does not take, a tolerance that is negative
    or not finite, and a module without dataflow blocks; `RunError` if the program as written does
    not run on `inputs`.
    """
    begin = perf_counter()
    args = arguments(module, function, inputs)
    some = Restricted.of(module, rules, options, told)
    tried = _Tries(some, function, args, rtol, atol)
    failure = tried.whole()
    exceeds = isinstance(failure, Raised) or failure.exceeds
    sets = _culprits(some, _sets(tried) if exceeds else [])
    return Bisected(
        sets=sets,
        failure=failure,
        exceeds=exceeds,
        remedy=_remedy(tried, sets),
        by=tried.by,
        rounding=None if tried.rounding is None else max(tried.rounding, default=0.0),
        candidates=tried.candidates,
        tries=some.tries,
        unresolved=tried.unresolved,
        seconds=perf_counter() - begin,
    )


def _sets(tried: "_Tries") -> list[tuple[str, ...]]:
    """Minimal sets of rules, disjoint, that fail as all rules do."""
    sets: list[tuple[str, ...]] = []
    rest = tried.candidates
    while len(sets) < _MOST_SETS and tried.outcome(rest) == "fails":
        found = minimal(rest, tried.outcome)
        if not found:
            break
        sets.append(found)
        rest = tuple(name for name in rest if name not in found)
    return sets


def _culprits(some: Restricted, sets: Sequence[tuple[str, ...]]) -> tuple[tuple[Culprit, ...], ...]:
    """The rules of `sets`, in each those first that are unsound by themselves."""
    if not sets:
        return ()
    session = some.session
    book = RuleBook.default([read(session.rules)], session.without, fast_math=True, bounded=True)
    verdicts = {v.rule: v for v in check_rules(book, only=[n for names in sets for n in names])}
    found = [[Culprit(some.book[n], verdicts[n]) for n in names] for names in sets]
    return tuple(tuple(sorted(one, key=lambda c: not c.is_unsound)) for one in found)


def _remedy(tried: "_Tries", sets: Sequence[Sequence[Culprit]]) -> tuple[str, ...]:
    """The rules of `sets` to leave out: those that are unsound by themselves if that is enough."""
    every = [culprit for found in sets for culprit in found]
    for culprits in ([c for c in every if c.is_unsound], every):
        names = tuple(culprit.rule.name for culprit in culprits)
        rest = tuple(name for name in tried.candidates if name not in names)
        if names and tried.outcome(rest) == "passes":
            return names
    return ()


@dataclass(slots=True)
class _Tries:
    """Tries of parts of the rules, each made once.

    What they are compared with, and which rules there are to try, is known when all were tried.
    """

    some: Restricted
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

    def whole(self) -> Failure:
        """What goes wrong with all rules, or goes right."""
        module = self.some.module
        try:
            expected = interpreted(module, self.function, self.args)
        except RunError:
            self.by = "machine"
            expected = built(module, self.function, self.args)
        if (meaning := meant(module, self.function, self.args)) is not None:
            self.rounding = rounding(expected, meaning)
        self._allowed = Allowed(expected, self.rtol, self.atol, self.rounding or ())
        best = self._optimized(self.some.whole)
        self._failure = self._compared(best)
        if self.by == "reference" and _outcome(self._failure, None) == "passes":
            self.by = "machine"
            self._failure = self._compared(best)
        self._known[self.candidates] = _outcome(self._failure, self._failure)
        return self._failure

    def outcome(self, chosen: tuple[str, ...]) -> Outcome:
        """Whether the rules `chosen` fail as all do."""
        if chosen not in self._known:
            found = self._compared(self._optimized(lambda: self.some.explained(chosen)))
            self._known[chosen] = _outcome(found, self._failure)
            self.unresolved += self._known[chosen] == "unresolved"
        return self._known[chosen]

    def _optimized(self, optimize: Callable[[], Explanation]) -> IRModule | Raised:
        try:
            explanation = optimize()
        except TextError:
            raise
        except RelaxEgraphError as error:
            self.candidates = self.candidates or tuple(self.some.book)
            return _raised(error)
        self.candidates = self.candidates or self.some.matched(explanation)
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


def _outcome(found: Failure, whole: Failure | None) -> Outcome:
    match found, whole:
        case Difference(exceeds=False), _:
            return "passes"
        case Difference(), Difference():
            return "fails"
        case Raised(kind=kind), Raised(kind=same) if kind == same:
            return "fails"
        case _:
            return "unresolved"
