"""Priority cuts: for each kernel class a bounded list of the best kernels that compute it.

The cuts of a class are its terms on top of cuts of their children, as in the enumeration of cuts in
technology mapping (Mishchenko et al., 2007).  Not all combinations are tried: the lightest ones,
and for each child every cut with the other children loaded.
"""

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from relax_egraph.egraph.view import ClassId
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.cut import Cut, Term, grow, trace
from relax_egraph.extract.offers import Offer


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of the enumeration of cuts; cuts beyond are dropped, and counted.

    Each class keeps, besides plain loads, `accepted` cuts that the library runs for each schedule,
    and `refused` ones that it does not, if a larger cut on top of one may run. For each term the
    `tried` lightest combinations are examined; no cut has more than `leaves` inputs or `steps`
    steps.
    """

    accepted: int = 5
    refused: int = 4
    tried: int = 16
    leaves: int = 16
    steps: int = 64


@dataclass(frozen=True, slots=True)
class OfferedCut:
    """A cut, and the kernel that the library offers for it, if any."""

    cut: Cut
    offer: Offer | None


@dataclass(frozen=True, slots=True)
class CutList:
    """The cuts that a class keeps; `dropped` counts those beyond a bound."""

    kept: tuple[OfferedCut, ...]
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Loads:
    """An estimate of the cost of loading a tensor, by which cuts are ranked.

    `seconds` are those of reading it, and its user's share of the cost of producing it; `free`
    classes are in every program.
    """

    seconds: dict[ClassId, float]
    free: frozenset[ClassId]

    def weight(self, cut: Cut) -> float:
        """An estimate of the seconds for the value of `cut`: its arithmetic and its loads."""
        return math.fsum([cut.seconds, *map(self.seconds.__getitem__, cut.leaves)])

    def lightest_beside(self, cut: Cut, others: Sequence[Cut]) -> int:
        """The index of the one of `others` that adds the least weight: what both need is shared."""
        loaded, computed = frozenset(cut.leaves), cut.terms
        added = [
            sum([self.seconds[k] for k in other.leaves if k not in loaded])
            + sum([term.seconds for term, _ in other.steps if term.owner not in computed])
            for other in others
        ]
        return added.index(min(added))


def cuts_of(
    terms: Sequence[Term],
    children_cuts: Mapping[ClassId, CutList],
    loads: Loads,
    catalogue: Catalogue,
    bounds: Bounds,
) -> CutList:
    """The cuts of the class that `terms` compute, from those of its child classes.

    A class that is missing in `children_cuts` has no cuts yet.
    """
    loads_only = [OfferedCut(trace(t.owner, {t.owner: t}), None) for t in terms if t.source >= 0]
    grown: dict[frozenset[Term], Cut] = {}
    dropped = 0
    for term in terms:
        if term.source >= 0:
            continue
        children = tuple(dict.fromkeys(term.children))
        lists = [_ranked(children_cuts.get(child, CutList(())), loads) for child in children]
        for parts in _combinations(lists, loads, bounds.tried):
            cut = grow(term, parts)
            if cut is None:
                continue
            if len(cut.leaves) > bounds.leaves or len(cut.steps) > bounds.steps:
                dropped += 1
                continue
            grown.setdefault(frozenset(cut.terms.values()), cut)
    best, more = _best(sorted(grown.values(), key=loads.weight), loads, catalogue, bounds)
    return CutList((*loads_only, *best), dropped + more)


def _ranked(cuts: CutList, loads: Loads) -> list[Cut]:
    return sorted((offered.cut for offered in cuts.kept), key=loads.weight)


def _combinations(
    lists: Sequence[list[Cut]], loads: Loads, tried: int
) -> Iterator[tuple[Cut, ...]]:
    """The `tried` lightest combinations of one cut of each list; each cut with the others loaded.

    And each cut with those of the others that add the least weight, since loads are shared.
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
    """All combinations of one index per ascending list, in order of the sum of weights."""
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
) -> tuple[list[OfferedCut], int]:
    """The cuts to keep of `ranked`, which is in order of weight, and how many were dropped.

    A cut is dominated if a lighter one loads a subset of its leaves and computes no more.
    """
    accepted: list[tuple[OfferedCut, frozenset[ClassId], Offer]] = []
    refused: list[OfferedCut] = []
    anchors: Counter[str] = Counter()
    dropped = 0
    for cut in ranked:
        needed = frozenset(cut.leaves) - loads.free
        offer = catalogue.offer(cut)
        if offer is None and not catalogue.may_grow(cut):
            continue
        if any(
            fewer <= needed
            and better.cut.seconds <= cut.seconds
            and (offer is None or cheaper.seconds <= offer.seconds)
            for better, fewer, cheaper in accepted
        ):
            continue
        if offer is None and len(refused) < bounds.refused:
            refused.append(OfferedCut(cut, None))
        elif offer and anchors[offer.anchor] < bounds.accepted:
            accepted.append((OfferedCut(cut, offer), needed, offer))
            anchors[offer.anchor] += 1
        else:
            dropped += 1
    return [*(offered for offered, _, _ in accepted), *refused], dropped
