"""The search for rules: enumerate, group, drop what follows, check, and keep a minimal set.

The loop is that of Ruler (Nandi et al., OOPSLA 2021): terms of a size are grouped by fingerprint,
and of the equations that the rules so far do not prove the most general one is checked and added
first, so that most of the others follow from it.  As in Enumo (Pal et al., OOPSLA 2023), small
terms are done before larger ones, and the rules that are there take part from the start.
"""

from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from itertools import chain
from time import monotonic
from typing import Any

from relax_egraph import rules
from relax_egraph.base.interruption import keeping
from relax_egraph.base.journal import Journal
from relax_egraph.base.run_input import VERSIONS, RunInput
from relax_egraph.base.sources import digest_of_code
from relax_egraph.discover.bounded import Bounded, OutOfTime
from relax_egraph.discover.candidates import Candidate, candidate, distinct
from relax_egraph.discover.classes import Classes
from relax_egraph.discover.derivation import derived
from relax_egraph.discover.enumeration import operators_of, terms_of_size
from relax_egraph.discover.evaluation import leaf_values, values_of
from relax_egraph.discover.status import UNANSWERED, Status, fields_of, is_wrong
from relax_egraph.discover.terms import Number, Term, size_of
from relax_egraph.discover.texts import equation, law, name_of, rewrite
from relax_egraph.discover.worlds import TENSORS
from relax_egraph.workers.executor import ExecutorOf
from relax_egraph.workers.tasks import Task

_BATCH = 40
"""The candidates that are loaded into one e-graph."""

_LIBRARIES = ("egglog", "numpy", "sympy")

Progress = Callable[[str], object]
"""A callback for what the run is doing."""


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched: terms over `operators` up to `size`, that `families` do not prove equal.

    Terms have so many `variables`, `numbers`, and `axes` of matrices.  The run ends after
    `seconds`, or with so many `terms`, which bounds its memory.  With `fast_math`, rules may be of
    float class ``fast``.
    """

    operators: tuple[str, ...]
    size: int
    families: tuple[str, ...] = rules.FAMILIES
    variables: int = 3
    numbers: tuple[float, ...] = ()
    axes: tuple[int, ...] = ()
    seconds: float = float("inf")
    terms: int = 200_000
    seed: int = 0
    fast_math: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A rule that was found: its name, the equation, and the status."""

    name: str
    candidate: Candidate
    status: Status

    @property
    def text(self) -> str:
        """The rewrite in the notation of rules."""
        return rewrite(self.candidate, self.status.guard, self.name)

    @property
    def equation(self) -> str:
        """The rewrite in both directions where that is one."""
        return equation(self.candidate, self.status.guard, self.name)

    def as_dict(self) -> dict[str, Any]:
        """The fields for JSON."""
        fields = {"name": self.name, "law": law(self.candidate), "text": self.text}
        return fields | {"gain": self.candidate.gain} | self.status.as_dict()


@dataclass(slots=True)
class Discovery:
    """The result of a run: rules, those that save most first, and counts by size of terms.

    `refused` are equations that fail, at least without a guard; so do as many `variants`, which
    follow from these.  `stopped` is the limit that ended the run; empty if it is complete.
    """

    found: list[Found] = field(default_factory=list[Found])
    refused: list[tuple[Candidate, Status]] = field(default_factory=list[tuple[Candidate, Status]])
    variants: int = 0
    layers: list[dict[str, int]] = field(default_factory=list[dict[str, int]])
    stopped: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The fields for JSON."""
        return {
            "rules": [found.as_dict() for found in self.found],
            "refused": [{"law": law(one)} | status.as_dict() for one, status in self.refused],
            "variants": self.variants,
            "layers": self.layers,
            "stopped": self.stopped,
        }


class _OutOfTerms(Exception):
    """The run has as many terms as it may have."""


_TO_SEARCH = 0.8
"""The share of the time for the search; the rest is for dropping what follows."""


def discover(
    search: Search,
    journal: Journal | None = None,
    progress: Progress = lambda _: None,
    executor: ExecutorOf | None = None,
) -> Discovery:
    """Search for rules.

    Derivations, checks and proofs run in the processes of `executor`, by default in one; those that
    may be needed next are begun on idle ones.  The result does not depend on how many there are,
    unless a limit ends the run.

    Raises ``ValueError`` for an operator that terms cannot have, and for a journal of another
    search, which may have other limits; `Interrupted` has the discovery so far.
    """
    started = monotonic()
    journal = journal or Journal()
    with Bounded(search.seconds * _TO_SEARCH, executor, journal) as bounded:
        run = _Run(search, journal, progress, bounded)
        with keeping(run.so_far):
            try:
                for size in range(1, search.size + 1):
                    run.select(run.layer(size))
            except OutOfTime:
                run.result.stopped = f"the limit of {search.seconds:g} s"
            except _OutOfTerms:
                run.result.stopped = f"the limit of {search.terms} terms"
    rest = search.seconds - (monotonic() - started)
    with Bounded(rest, executor, journal) as run.bounded, keeping(run.so_far):
        try:
            run.minimize()
        except OutOfTime:
            run.result.stopped = f"the limit of {search.seconds:g} s, before all was minimal"
    return run.ordered()


@dataclass(slots=True)
class _Run:
    """A run: `book` is a digest of the families, so that answers of another book are not taken."""

    search: Search
    journal: Journal
    progress: Progress
    bounded: Bounded
    result: Discovery = field(default_factory=Discovery)
    classes: Classes = field(default_factory=Classes)
    blocks: list[list[Term]] = field(default_factory=list[list[Term]])
    book: str = ""

    def __post_init__(self) -> None:
        texts = (rules.text(family) for family in (*rules.FACTS, *self.search.families))
        self.book = sha256("".join(texts).encode()).hexdigest()
        leaves = [*TENSORS[: self.search.variables], *map(Number, self.search.numbers)]
        self.blocks.append([t for t in leaves if self.classes.add(t, leaf_values(t)) is None])
        operators_of(self.search.operators)  # what is refused leaves the journal as it is
        self.input.require_in(self.journal)

    @property
    def input(self) -> RunInput:
        """What the answers in the journal depend on."""
        search = self.search
        libraries = (f"{name} {version(name)}" for name in _LIBRARIES)
        terms = [search.operators, search.variables, search.numbers, search.axes]
        parts = {
            VERSIONS: [digest_of_code(), *libraries],
            "families of rules": self.book,
            "operators, variables, numbers or axes": terms,
            "float classes": search.fast_math,
            "seeds": search.seed,
        }
        return RunInput("discovery", parts)

    def ordered(self) -> Discovery:
        """What was found, the rules with the largest gains first."""
        self.result.found.sort(key=lambda f: -f.candidate.gain)
        return self.result

    def so_far(self) -> tuple[str, Discovery]:
        """How many rules were found before an interruption, and what was."""
        self.result.stopped = "an interruption"
        return f"{len(self.result.found)} rules were found", self.ordered()

    def layer(self, size: int) -> list[Candidate]:
        """The candidates among the terms with `size` operators."""
        operators = operators_of(self.search.operators)
        self.blocks.append([])
        found: list[Candidate] = []
        count = 0
        terms = terms_of_size(size, operators, self.blocks, self.search.axes)
        for count, term in enumerate(terms, 1):
            if count % 1000 == 0:
                self.progress(f"size {size}: {count} terms, {len(found)} equations")
                self.check_limits(count)
            values = values_of(term, self.classes.values.__getitem__)
            known = self.classes.add(term, values)
            if known is None:
                self.blocks[size].append(term)
            elif known is not term:
                one = candidate(term, known, ChainMap({term: values}, self.classes.values))
                found += [one] if one else []
        every = distinct(found)
        self.result.layers.append({"size": size, "terms": count, "candidates": len(every)})
        return every

    def check_limits(self, terms: int = 0) -> None:
        """Raise `OutOfTime` or `_OutOfTerms` if the run has to end."""
        self.bounded.check()
        if len(self.classes.values) + terms > self.search.terms:
            raise _OutOfTerms

    def select(self, candidates: Sequence[Candidate]) -> None:
        """Add those of `candidates` that do not follow from others, the most general first."""
        ahead = self.bounded.ahead
        for first in range(0, len(candidates), _BATCH):
            self.progress(
                f"{len(self.result.found)} rules; {len(candidates) - first} equations to try"
            )
            ahead.expect(self.batches(candidates[first + _BATCH :]))
            rest = self.underived(candidates[first : first + _BATCH])
            while rest:
                self.check_limits()
                statuses = map(self.status_task, rest)
                ahead.expect(chain(statuses, self.batches(candidates[first + _BATCH :])))
                one, *rest = rest
                if self.add(one):
                    rest = self.underived(rest)

    def batches(self, candidates: Sequence[Candidate]) -> Iterator[Task]:
        """What is asked of `candidates`, batch by batch, unless another rule is found before."""
        texts = self.texts()
        for first in range(0, len(candidates), _BATCH):
            yield self.derivation(texts, candidates[first : first + _BATCH])

    def add(self, one: Candidate) -> bool:
        """Check `one`, and add it if it is a rule that does not follow; returns whether it is."""
        if not self.underived([one], both_ways=True):
            return False
        if not self.underived([one], both_ways=True, refused=True) and self.is_wrong(one):
            self.result.variants += 1
            return False
        status = self.status(one)
        if not status.is_rule or status.guard:
            self.result.refused.append((one, status))
        if not status.is_rule:
            return False
        if status.guard and not self.underived([one.where(status.guard)], both_ways=True):
            return False
        name = name_of(one, {found.name for found in self.result.found})
        self.result.found.append(Found(name, one, status))
        return True

    def is_wrong(self, one: Candidate) -> bool:
        """Whether `one` fails on a random instance: what `status` explains, which takes longer."""
        fast, seed = self.search.fast_math, self.search.seed
        call = partial(is_wrong, one, fast, seed)
        return self.bounded.ahead.answer(Task(["wrong", str(one), fast, seed], call)) is not False

    def status(self, one: Candidate) -> Status:
        """The status of `one`, which the journal may know."""
        answer = self.bounded.ahead.answer(self.status_task(one))
        return UNANSWERED if answer is None else Status(**answer)

    def status_task(self, one: Candidate) -> Task:
        """What computes the status of `one`."""
        fast, seed = self.search.fast_math, self.search.seed
        return Task(["status", str(one), fast, seed], partial(fields_of, one, fast, seed))

    def underived(
        self,
        candidates: Sequence[Candidate],
        without: Found | None = None,
        *,
        both_ways: bool = False,
        refused: bool = False,
    ) -> list[Candidate]:
        """Those of `candidates` that the book and the rules found do not prove."""
        texts = self.texts(without, both_ways=both_ways, refused=refused)
        answers = self.derived(texts, candidates) if candidates else []
        return [one for one, known in zip(candidates, answers, strict=True) if not known]

    def texts(
        self, without: Found | None = None, *, both_ways: bool = False, refused: bool = False
    ) -> str:
        """The rules that take part in derivations besides the book.

        Rules found run from left to right, as in the book, or `both_ways`, as equations; with
        `refused`, equations that are wrong without a guard run, too.
        """
        found = [f for f in self.result.found if f is not without]
        texts = [f.equation if both_ways else f.text for f in found]
        wrong = [one for one, _ in self.result.refused] if refused else []
        texts += [equation(one, "", f"refused-{k}") for k, one in enumerate(wrong)]
        return "\n".join(texts)

    def derived(self, texts: str, candidates: Sequence[Candidate]) -> list[bool]:
        """Whether the book and the rules `texts` prove each of `candidates`.

        Candidates that take too much together are asked for in halves; one by itself that does is
        not proved.
        """
        answers = self.bounded.ahead.answer(self.derivation(texts, candidates))
        if answers is not None:
            return answers
        if len(candidates) == 1:
            return [False]
        half = len(candidates) // 2
        return [*self.derived(texts, candidates[:half]), *self.derived(texts, candidates[half:])]

    def derivation(self, texts: str, candidates: Sequence[Candidate]) -> Task:
        """What asks whether the book and the rules `texts` prove each of `candidates`."""
        fast = self.search.fast_math
        asked = [[str(one), one.worlds] for one in candidates]
        call = partial(derived, self.search.families, fast, texts, candidates)
        return Task(["derived", self.book, fast, texts, asked], call)

    def minimize(self) -> None:
        """Drop rules that the others prove: one may be found before those that it follows from.

        A rule that shrinks its left side has to follow from left to right, or programs lose it.
        """
        every = tuple(reversed(self.result.found))
        for number, found in enumerate(every):
            self.bounded.ahead.expect(map(self.dropping, every[number:]))
            if self.follows(found):
                self.result.found.remove(found)

    def follows(self, found: Found) -> bool:
        """Whether the other rules prove `found`."""
        one, both_ways = _as_dropped(found)
        return not self.underived([one], without=found, both_ways=both_ways)

    def dropping(self, found: Found) -> Task:
        """What `follows` asks, unless another rule is dropped before."""
        one, both_ways = _as_dropped(found)
        return self.derivation(self.texts(found, both_ways=both_ways), [one])


def _as_dropped(found: Found) -> tuple[Candidate, bool]:
    """What the other rules have to prove, and whether they may do so both ways."""
    one = found.candidate.where(found.status.guard)
    return one, size_of(one.left) == size_of(one.right)
