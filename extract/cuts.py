"""Priority cuts: for each kernel class a bounded list of the best kernels that end there.

A class's cuts are its terms on top of cuts of their children.  Not all combinations are tried:
the most promising ones, and for each child every cut with the other children loaded.
"""

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from relax_egraph.egraph.view import ClassId
from relax_egraph.extract.catalogue import Catalogue, Offer
from relax_egraph.extract.cut import Cut, Term, grow, trace


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many cuts are weighed; those beyond are dropped, and counted.

    Of each class are kept, besides plain loads, `accepted` cuts that the library runs by each of
    its schedules, and `refused` ones: what is built on top may run again.
    For each term the `tried` most promising combinations are looked at; no cut has more than
    `leaves` inputs or `steps` steps.
    """

    accepted: int = 5
    refused: int = 4
    tried: int = 16
    leaves: int = 16
    steps: int = 64


@dataclass(frozen=True, slots=True)
class Weighed:
    """A cut, and the kernel it is if the library runs it."""

    cut: Cut
    offer: Offer | None


@dataclass(frozen=True, slots=True)
class CutList:
    """What is kept of a class's cuts; `dropped` says how many met a bound."""

    kept: tuple[Weighed, ...]
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Loads:
    """What it takes to load a tensor: a means to rank cuts, so it may be rough.

    `seconds` are those of reading it, and a kernel's part of making it; what is `free` is
    there in every program.
    """

    seconds: dict[ClassId, float]
    free: frozenset[ClassId]

    def weight(self, cut: Cut) -> float:
        """Roughly the seconds that it takes to have the cut's value inside a kernel."""
        return math.fsum([cut.seconds, *(self.seconds[leaf] for leaf in cut.leaves)])

    def lightest_beside(self, cut: Cut, others: Sequence[Cut]) -> int:
        """Which of `others` adds the least weight to `cut`, whose loads it may share."""
        there = frozenset(cut.leaves)
        added = [
            other.seconds + sum([self.seconds[k] for k in other.leaves if k not in there])
            for other in others
        ]
        return added.index(min(added))


def cuts_of(
    terms: Sequence[Term],
    below: Mapping[ClassId, CutList],
    loads: Loads,
    catalogue: Catalogue,
    bounds: Bounds,
) -> CutList:
    """The cuts of the class that `terms` make, from those of the classes below.

    A class that is missing in `below` has no cuts yet.
    """
    kept = [Weighed(trace(t.owner, {t.owner: t}), None) for t in terms if t.source >= 0]
    grown: dict[frozenset[Term], Cut] = {}
    dropped = 0
    for term in terms:
        if term.source >= 0:
            continue
        children = tuple(dict.fromkeys(term.children))
        lists = [_ranked(below.get(child, CutList(())), loads) for child in children]
        for parts in _combinations(lists, loads, bounds.tried):
            cut = grow(term, parts)
            if cut is None:
                continue
            if len(cut.leaves) > bounds.leaves or len(cut.steps) > bounds.steps:
                dropped += 1
                continue
            grown.setdefault(frozenset(cut.terms.values()), cut)
    best, more = _best(sorted(grown.values(), key=loads.weight), loads, catalogue, bounds)
    return CutList((*kept, *best), dropped + more)


def _ranked(cuts: CutList, loads: Loads) -> list[Cut]:
    return sorted((weighed.cut for weighed in cuts.kept), key=loads.weight)


def _combinations(
    lists: Sequence[list[Cut]], loads: Loads, tried: int
) -> Iterator[tuple[Cut, ...]]:
    """The `tried` lightest choices of one of each list; then each cut with the others loaded.

    And each cut with those of the others that are lightest beside it: what it loads they may too.
    """
    if not all(lists):
        return
    weights = [[loads.weight(cut) for cut in cuts] for cuts in lists]
    chosen = dict.fromkeys(itertools.islice(_lightest(weights), tried))
    loaded = tuple([next((k for k, c in enumerate(cuts) if not c.steps), 0) for cuts in lists])
    for position, cuts in enumerate(lists):
        for k, cut in enumerate(cuts):
            chosen[(*loaded[:position], k, *loaded[position + 1 :])] = None
            if cut.steps and len(lists) > 1:
                beside = [loads.lightest_beside(cut, others) for others in lists]
                chosen[(*beside[:position], k, *beside[position + 1 :])] = None
    for places in chosen:
        yield tuple([cuts[k] for cuts, k in zip(lists, places, strict=True)])


def _lightest(weights: Sequence[Sequence[float]]) -> Iterator[tuple[int, ...]]:
    """All choices of one place in each ascending list, in order of the sum of weights."""
    start = tuple([0] * len(weights))
    heap = [(sum(w[0] for w in weights), start)]
    seen = {start}
    while heap:
        _, places = heapq.heappop(heap)
        yield places
        for position, k in enumerate(places):
            following = (*places[:position], k + 1, *places[position + 1 :])
            if k + 1 < len(weights[position]) and following not in seen:
                seen.add(following)
                total = sum(w[p] for w, p in zip(weights, following, strict=True))
                heapq.heappush(heap, (total, following))


def _best(
    ranked: Sequence[Cut], loads: Loads, catalogue: Catalogue, bounds: Bounds
) -> tuple[list[Weighed], int]:
    """What is kept of cuts in order of weight, and how many more there were.

    Of no use is a cut that makes other kernels necessary for all that a lighter one does,
    and for more, and computes as much.
    """
    accepted: list[tuple[Weighed, frozenset[ClassId], Offer]] = []
    refused: list[Weighed] = []
    anchors: Counter[str] = Counter()
    dropped = 0
    for cut in ranked:
        needed = frozenset(cut.leaves) - loads.free
        offer = catalogue.offer(cut)
        if any(
            fewer <= needed
            and better.cut.seconds <= cut.seconds
            and (offer is None or cheaper.seconds <= offer.seconds)
            for better, fewer, cheaper in accepted
        ):
            continue
        if offer is None and len(refused) < bounds.refused:
            refused.append(Weighed(cut, None))
        elif offer and anchors[offer.anchor] < bounds.accepted:
            accepted.append((Weighed(cut, offer), needed, offer))
            anchors[offer.anchor] += 1
        else:
            dropped += 1
    return [*(weighed for weighed, _, _ in accepted), *refused], dropped
