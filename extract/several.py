"""Kernels that make several classes at once: each is stored by the kernel that has it anyway.

Pairs of classes are tried with the lightest cuts of both; then pairs are joined to groups, by
what they save, most first.  So there are a few for each class, and all are priced exactly.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

from relax_egraph.egraph.view import STORE, Choice, ClassId, ENode, View
from relax_egraph.extract.catalogue import Catalogue, Offer
from relax_egraph.extract.cut import TOGETHER, Cut, Term, grow, trace
from relax_egraph.extract.cuts import Bounds, Weighed
from relax_egraph.extract.first import First, first_program
from relax_egraph.extract.pairs import Pair, pairs_of
from relax_egraph.extract.ways import Way, Ways

_CUTS = 2
"""How many cuts of each of a pair are tried, beside the first program's."""

_TRIED = 8
"""How many of the ways to put cuts together are looked at."""

_KEPT = 2
"""How many kernels for a pair are kept: those that read all that another does are none."""

_MOST = 8
"""How many classes one kernel makes at most: each is a stream for the memory system."""

_WORTH = 1 / 64
"""The share of what the classes cost one by one that has to be saved."""

_TOGETHER = -1
"""The owner of the term that ends a cut of several values: it is no class."""

_Parts: TypeAlias = tuple[Mapping[ClassId, Cut], Cut]
"""Cuts by the classes that they make, and the cut that they are together."""


@dataclass(frozen=True, slots=True)
class Several:
    """A kernel that makes several classes; `parts` are the cuts that it was put together from.

    `saved` are the seconds that it costs less than ways that make the classes one by one, from
    what the kernel reads; infinite if there are none.
    """

    parts: Mapping[ClassId, Cut]
    cut: Cut
    way: Way
    saved: float

    def choice(self, wanted: Set[ClassId], catalogue: Catalogue) -> Choice:
        """The kernel that makes those of the classes that are `wanted`."""
        outputs = tuple(c for c in self.way.choice.outputs if c in wanted)
        if outputs == self.way.choice.outputs:
            return self.way.choice
        cut = _of(self.cut, [_top(self.parts[c]) for c in outputs])
        return Choice(catalogue.kernel(cut), cut.leaves, outputs)


def several_of(view: View, ways: Ways, catalogue: Catalogue, bounds: Bounds) -> tuple[Several, ...]:
    """The kernels of several outputs that are worth weighing against those of one."""
    first = first_program(view, ways)
    made = {c: cut for c, way in first.ways.items() if (cut := _cut_of(view, ways, c, way))}
    joining = _Joining(view, ways, first, catalogue, bounds, made)
    found = pairs_of(view, ways, first, made)
    pairs = tuple(itertools.chain.from_iterable(map(joining.pair, found)))
    return (*pairs, *joining.groups(pairs))


@dataclass(frozen=True, slots=True)
class _Joining:
    """Puts cuts together; `made` are those of the first program."""

    view: View
    ways: Ways
    first: First
    catalogue: Catalogue
    bounds: Bounds
    made: Mapping[ClassId, Cut]

    def pair(self, pair: Pair) -> Iterator[Several]:
        """The lightest kernels that make both classes and are worth it."""
        a, b = pair
        tried = [*self._within(a, b), *self._within(b, a)]
        tried += ({a: x, b: y} for x in self._cuts(a) for y in self._cuts(b))
        return itertools.islice(self._lightest(tried), _KEPT)

    def _within(self, inner: ClassId, c: ClassId) -> Iterator[Mapping[ClassId, Cut]]:
        """Cuts of class `c` that compute `inner` on the way, with what they compute it by."""
        tops = {_top(cut) for cut in self._cuts(inner)}
        for cut in _accepted(self.view, self.ways, c):
            for term, _ in cut.steps[:-1]:
                if term.owner in tops:
                    yield {inner: trace(term.owner, cut.terms), c: cut}

    def groups(self, pairs: Sequence[Several]) -> Iterator[Several]:
        """Pairs joined while that saves more, those that save most first."""
        group_of: dict[ClassId, Several] = {}
        for pair in sorted(pairs, key=lambda p: -p.saved if p.saved < math.inf else 0.0):
            groups = {id(group): group for c in pair.parts if (group := group_of.get(c))}
            joined = self._with_groups(pair, [*groups.values()]) if groups else pair
            if joined:
                group_of.update(dict.fromkeys(joined.parts, joined))
                if groups:
                    yield joined

    def _with_groups(self, pair: Several, groups: Sequence[Several]) -> Several | None:
        """The `groups` as one, with the class of `pair` that is in none, if that costs less."""
        parts = {c: cut for group in groups for c, cut in group.parts.items()}
        alone = [c for c in pair.parts if c not in parts]
        if len(groups) + len(alone) < 2 or len(parts) + len(alone) > _MOST:
            return None
        more = [{**parts, c: cut} for c in alone for cut in self._cuts(c)]
        joined = next(self._lightest(more or [parts]), None)
        if joined is None:
            return None
        apart = self._apart(alone, (*joined.cut.leaves, *parts))
        return joined if joined.way.cost < apart + sum(g.way.cost for g in groups) else None

    def _lightest(self, tried: Iterable[Mapping[ClassId, Cut]]) -> Iterator[Several]:
        """What the library runs and is worth it, of the lightest; none that reads more besides."""
        joined = [each for each in map(self._put_together, tried) if each]
        joined.sort(key=lambda each: self.ways.loads.weight(each[1]))
        read: list[frozenset[ClassId]] = []
        for parts, cut in joined[:_TRIED]:
            leaves = frozenset(cut.leaves)
            if not any(fewer <= leaves for fewer in read) and (found := self._several(parts, cut)):
                read.append(leaves)
                yield found

    def _put_together(self, parts: Mapping[ClassId, Cut]) -> _Parts | None:
        """One cut of all the values that `parts` end in; ``None`` if they wait for each other.

        What a part reads of another is there, if the other comes first.
        """
        rest, ordered = dict(parts), list[Cut]()
        while rest:
            free = next((c for c, cut in rest.items() if rest.keys().isdisjoint(cut.leaves)), None)
            if free is None:
                return None
            ordered.append(rest.pop(free))
        tops = {_top(cut): c for c, cut in parts.items()}
        cut = grow(_together(tuple(tops)), ordered)
        if cut is None:
            return None
        outputs = [term.owner for term, _ in cut.steps if term.owner in tops]
        return {tops[k]: parts[tops[k]] for k in outputs}, _of(cut, outputs)

    def _several(self, parts: Mapping[ClassId, Cut], cut: Cut) -> Several | None:
        """The kernel of `cut`, if the library runs it, and it saves enough."""
        if len(cut.leaves) > self.bounds.leaves or len(cut.steps) > self.bounds.steps:
            return None
        if not all(self._is_there(leaf, parts) for leaf in cut.leaves):
            return None
        offer = self.catalogue.offer(cut)
        if offer is None:
            return None
        way = Way(
            Choice(offer.kernel, cut.leaves, tuple(parts)),
            offer.seconds + self.ways.given.building(cut.leaves),
        )
        apart = self._apart(parts, cut.leaves)
        saved = apart - way.cost
        return Several(parts, cut, way, saved) if saved >= _WORTH * apart else None

    def _is_there(self, leaf: ClassId, classes: Iterable[ClassId]) -> bool:
        """Whether the first program has class `leaf`, and before any of `classes`."""
        if leaf in self.ways.given.choice:
            return True
        return leaf in self.first.ways and not any(self.first.needs(leaf, c) for c in classes)

    def _apart(self, classes: Iterable[ClassId], leaves: tuple[ClassId, ...]) -> float:
        """What ways of one output each cost that make `classes`, in order, from `leaves`."""
        given, there = self.ways.given.choice, set(leaves)
        total = 0.0
        for c in classes:
            ways = self.ways.of[c]
            found = (w.cost for w in ways if all(k in there or k in given for k in w.choice.inputs))
            total += min(found, default=math.inf)
            there.add(c)
        return total

    def _cuts(self, c: ClassId) -> list[Cut]:
        """The cut of class `c` in the first program, and its lightest ones."""
        lightest = sorted(_accepted(self.view, self.ways, c), key=self.ways.loads.weight)
        return list(dict.fromkeys((*filter(None, [self.made.get(c)]), *lightest[:_CUTS])))


def _accepted(view: View, ways: Ways, c: ClassId) -> list[Cut]:
    return [weighed.cut for weighed, _ in _offered(view, ways, c)]


def _offered(view: View, ways: Ways, c: ClassId) -> list[tuple[Weighed, Offer]]:
    """The cuts that the library runs of what is stored as class `c`."""
    stored = (ways.cuts.get(n.classes[0]) for n in view.classes[c].nodes if n.op == STORE)
    kept = (weighed for found in stored if found for weighed in found.kept)
    return [(weighed, weighed.offer) for weighed in kept if weighed.offer]


def _cut_of(view: View, ways: Ways, c: ClassId, way: Way) -> Cut | None:
    """The cut of `way`, which makes class `c`; ``None`` if it has none that can be put together."""
    for weighed, offer in _offered(view, ways, c):
        if offer.kernel is way.choice.how and weighed.cut.leaves == way.choice.inputs:
            return weighed.cut
    return None


def _of(cut: Cut, tops: Sequence[ClassId]) -> Cut:
    """Of all that `cut` computes only what the kernel classes `tops` take."""
    if len(tops) == 1:
        return trace(tops[0], cut.terms)
    return trace(_TOGETHER, {**cut.terms, _TOGETHER: _together(tuple(tops))})


def _together(tops: tuple[ClassId, ...]) -> Term:
    """The term on top of a cut of several values."""
    return Term(_TOGETHER, ENode(TOGETHER), -2, tops)


def _top(cut: Cut) -> ClassId:
    """The kernel class of the value that `cut` ends in."""
    return cut.steps[-1][0].owner
