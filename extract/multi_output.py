"""Multi-output kernels: kernels that store several classes.

Pairs of classes are tried with the lightest cuts of both; then pairs are merged into groups,
greedily by the seconds that they save.  So there are a few per class, and all are priced exactly.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

from relax_egraph.egraph.node import STORE, Node
from relax_egraph.egraph.view import Choice, ClassId, View
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.choices import ChoiceTable, PricedChoice
from relax_egraph.extract.cut import TOGETHER, Cut, Term, grow, trace
from relax_egraph.extract.cuts import Bounds, OfferedCut
from relax_egraph.extract.initial import InitialProgram, initial_program
from relax_egraph.extract.offers import Offer
from relax_egraph.extract.pairs import Pair, pairs_of

_CUTS = 2
"""How many cuts of each class of a pair are tried, besides that of the initial program."""

_TRIED = 8
"""How many combinations of cuts are priced for a pair."""

_KEPT = 2
"""How many kernels of a pair are kept; one that reads a superset of what another reads is not."""

_MAX_OUTPUTS = 8
"""The outputs of a kernel at most: each is a stream for the memory system."""

_MIN_SAVING = 1 / 64
"""The share of the cost of separate kernels that a multi-output kernel has to save."""

_TOGETHER = -1
"""The owner of the term on top of a cut with several outputs: no class has this number."""

_MergedCut: TypeAlias = tuple[Mapping[ClassId, Cut], Cut]
"""Cuts by their output classes, and the one cut that has all these outputs."""


@dataclass(frozen=True, slots=True)
class MultiOutputKernel:
    """A kernel with several outputs; `parts` are the cuts that it was merged from, by output.

    `saved` are the seconds that it saves over single-output kernels that read the same tensors;
    infinite if there are none.
    """

    parts: Mapping[ClassId, Cut]
    cut: Cut
    priced: PricedChoice
    saved: float

    def choice(self, wanted: Set[ClassId], catalogue: Catalogue) -> Choice:
        """The kernel restricted to the outputs that are `wanted`."""
        outputs = tuple(c for c in self.priced.choice.outputs if c in wanted)
        if outputs == self.priced.choice.outputs:
            return self.priced.choice
        cut = _restricted(self.cut, [self.parts[c].top for c in outputs])
        return Choice(catalogue.kernel(cut), cut.leaves, outputs)


def multi_output_kernels(
    view: View, table: ChoiceTable, catalogue: Catalogue, bounds: Bounds
) -> tuple[MultiOutputKernel, ...]:
    """The multi-output kernels that are candidates besides those with one output."""
    initial = initial_program(view, table)
    cuts = {c: cut for c, p in initial.choices.items() if (cut := _cut_of(view, table, c, p))}
    merger = _Merger(view, table, initial, catalogue, bounds, cuts)
    pairs = pairs_of(view, table, initial, cuts)
    kernels = tuple(itertools.chain.from_iterable(map(merger.pair, pairs)))
    return (*kernels, *merger.groups(kernels))


@dataclass(frozen=True, slots=True)
class _Merger:
    """Merges cuts into kernels; `initial_cuts` are those of the initial program."""

    view: View
    table: ChoiceTable
    initial: InitialProgram
    catalogue: Catalogue
    bounds: Bounds
    initial_cuts: Mapping[ClassId, Cut]

    def pair(self, pair: Pair) -> Iterator[MultiOutputKernel]:
        """The lightest kernels that store both classes and save enough."""
        a, b = pair
        tried = [*self._within(a, b), *self._within(b, a)]
        tried += ({a: x, b: y} for x in self._cuts(a) for y in self._cuts(b))
        return itertools.islice(self._lightest(tried), _KEPT)

    def _within(self, inner: ClassId, c: ClassId) -> Iterator[Mapping[ClassId, Cut]]:
        """Cuts of class `c` that compute `inner` on the way, each with the cut of `inner` in it."""
        tops = {cut.top for cut in self._cuts(inner)}
        for cut in _accepted(self.view, self.table, c):
            for term, _ in cut.steps[:-1]:
                if term.owner in tops:
                    yield {inner: trace(term.owner, cut.terms), c: cut}

    def groups(self, pairs: Sequence[MultiOutputKernel]) -> Iterator[MultiOutputKernel]:
        """Kernels merged from pairs while that saves more, the pair that saves most first."""
        group_of: dict[ClassId, MultiOutputKernel] = {}
        for pair in sorted(pairs, key=lambda p: -p.saved if p.saved < math.inf else 0.0):
            groups = {id(group): group for c in pair.parts if (group := group_of.get(c))}
            merged = self._with_groups(pair, [*groups.values()]) if groups else pair
            if merged:
                group_of.update(dict.fromkeys(merged.parts, merged))
                if groups:
                    yield merged

    def _with_groups(
        self, pair: MultiOutputKernel, groups: Sequence[MultiOutputKernel]
    ) -> MultiOutputKernel | None:
        """One kernel of `groups` and the class of `pair` that is in none, if that costs less."""
        parts = {c: cut for group in groups for c, cut in group.parts.items()}
        new = [c for c in pair.parts if c not in parts]
        if len(groups) + len(new) < 2 or len(parts) + len(new) > _MAX_OUTPUTS:
            return None
        more = [{**parts, c: cut} for c in new for cut in self._cuts(c)]
        merged = next(self._lightest(more or [parts]), None)
        if merged is None:
            return None
        separate = self._separate_cost(new, (*merged.cut.leaves, *parts))
        separate += sum(g.priced.cost for g in groups)
        return merged if merged.priced.cost < separate else None

    def _lightest(self, tried: Iterable[Mapping[ClassId, Cut]]) -> Iterator[MultiOutputKernel]:
        """The kernels of the lightest combinations; none that reads a superset of another's."""
        merged = [each for each in map(self._merged, tried) if each]
        merged.sort(key=lambda each: self.table.loads.weight(each[1]))
        read: list[frozenset[ClassId]] = []
        for parts, cut in merged[:_TRIED]:
            leaves = frozenset(cut.leaves)
            if not any(fewer <= leaves for fewer in read) and (kernel := self._kernel(parts, cut)):
                read.append(leaves)
                yield kernel

    def _merged(self, parts: Mapping[ClassId, Cut]) -> _MergedCut | None:
        """One cut with all outputs of `parts`; ``None`` if they depend on each other in a cycle.

        A part that reads the output of another comes after it.
        """
        rest, ordered = dict(parts), list[Cut]()
        while rest:
            free = next((c for c, cut in rest.items() if rest.keys().isdisjoint(cut.leaves)), None)
            if free is None:
                return None
            ordered.append(rest.pop(free))
        tops = {cut.top: c for c, cut in parts.items()}
        cut = grow(_output_term(tuple(tops)), ordered)
        if cut is None:
            return None
        outputs = [term.owner for term, _ in cut.steps if term.owner in tops]
        return {tops[k]: parts[tops[k]] for k in outputs}, _restricted(cut, outputs)

    def _kernel(self, parts: Mapping[ClassId, Cut], cut: Cut) -> MultiOutputKernel | None:
        """The kernel of `cut`, if the library runs it and it saves enough."""
        if len(cut.leaves) > self.bounds.leaves or len(cut.steps) > self.bounds.steps:
            return None
        if not all(self._is_available(leaf, parts) for leaf in cut.leaves):
            return None
        offer = self.catalogue.offer(cut)
        if offer is None:
            return None
        priced = PricedChoice(
            Choice(offer.kernel, cut.leaves, tuple(parts)),
            offer.seconds + self.table.free.build_cost(cut.leaves),
        )
        separate = self._separate_cost(parts, cut.leaves)
        saved = separate - priced.cost
        if saved < _MIN_SAVING * separate:
            return None
        return MultiOutputKernel(parts, cut, priced, saved)

    def _is_available(self, leaf: ClassId, classes: Iterable[ClassId]) -> bool:
        """Whether the initial program has class `leaf`, and before any of `classes`."""
        if leaf in self.table.free.choices:
            return True
        needs = self.initial.needs
        return leaf in self.initial.choices and not any(needs(leaf, c) for c in classes)

    def _separate_cost(self, classes: Iterable[ClassId], leaves: tuple[ClassId, ...]) -> float:
        """The cost of single-output kernels for `classes`, in order, that read only `leaves`."""
        available = {*leaves, *self.table.free.choices}
        total = 0.0
        for c in classes:
            choices = self.table.by_class[c]
            costs = (p.cost for p in choices if available.issuperset(p.choice.inputs))
            total += min(costs, default=math.inf)
            available.add(c)
        return total

    def _cuts(self, c: ClassId) -> list[Cut]:
        """The cut of class `c` in the initial program, and its lightest ones."""
        lightest = sorted(_accepted(self.view, self.table, c), key=self.table.loads.weight)
        initial = filter(None, [self.initial_cuts.get(c)])
        return list(dict.fromkeys((*initial, *lightest[:_CUTS])))


def _accepted(view: View, table: ChoiceTable, c: ClassId) -> list[Cut]:
    return [offered.cut for offered, _ in _offered(view, table, c)]


def _offered(view: View, table: ChoiceTable, c: ClassId) -> list[tuple[OfferedCut, Offer]]:
    """The cuts of class `c` that the library runs."""
    stored = (table.cuts.get(n.operands[0]) for n in view.classes[c].nodes if n.op == STORE)
    kept = (offered for cuts in stored if cuts for offered in cuts.kept)
    return [(offered, offered.offer) for offered in kept if offered.offer]


def _cut_of(view: View, table: ChoiceTable, c: ClassId, priced: PricedChoice) -> Cut | None:
    """The cut of `priced`, a choice for class `c`; ``None`` if it is no cut of stored values."""
    for offered, offer in _offered(view, table, c):
        if offer.kernel is priced.choice.how and offered.cut.leaves == priced.choice.inputs:
            return offered.cut
    return None


def _restricted(cut: Cut, tops: Sequence[ClassId]) -> Cut:
    """The part of `cut` that computes the kernel classes `tops`."""
    if len(tops) == 1:
        return trace(tops[0], cut.terms)
    return trace(_TOGETHER, {**cut.terms, _TOGETHER: _output_term(tuple(tops))})


def _output_term(tops: tuple[ClassId, ...]) -> Term:
    """The term on top of a cut with several outputs."""
    return Term(_TOGETHER, Node(TOGETHER), -2, tops)
