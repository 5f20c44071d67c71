"""Decides whether the sides of a rule differ on an instance, and in which way."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from relax_egraph.egraph.rulebook.rule import Direction
from relax_egraph.egraph.rulebook.vocabulary import Declaration
from relax_egraph.ir import dims
from relax_egraph.verify.failures.sides import Sides, extents_of, program_of, sides_of
from relax_egraph.verify.failures.terms import equated
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.values.classes import Difference
from relax_egraph.verify.values.inputs import KINDS, Array, Kind
from relax_egraph.verify.values.tolerance import ORDER, Computed, Gap, Need, gap

How: TypeAlias = Literal["no value", "no number", "other form", "other elements"]
"""The way in which sides differ; later in the alphabet is more informative."""

_EVALUATIONS = 1500
_SEEDS = 3


@dataclass(slots=True)
class Judge:
    """Accepts instances whose sides differ at least as informatively as those of a first instance.

    `sides` are those of the last accepted instance, with its elements.  After some 1,500
    evaluations, no instance is accepted any more.
    """

    pattern: Direction
    declarations: Mapping[str, Declaration]
    wanted: Need
    how: How
    kind: Kind
    sides: Sides
    left: int = _EVALUATIONS

    @staticmethod
    def of(
        pattern: Direction,
        instance: Instance,
        declarations: Mapping[str, Declaration],
        seeds: int = _SEEDS,
    ) -> "Judge | None":
        """The judge for the worst difference on `instance`; ``None`` if the sides are equal.

        Raises `Unknown` if only egglog computes a side.
        """
        if not equated(pattern):
            return None
        worst: Judge | None = None
        for kind, sides in _runs(pattern, instance, declarations, seeds):
            how, largest = _differ(sides, kind)
            if largest.need == "exact":
                continue
            before = ("exact", "") if worst is None else (worst.wanted, worst.how)
            if (ORDER.index(largest.need), how) > (ORDER.index(before[0]), before[1]):
                worst = Judge(pattern, declarations, largest.need, how, kind, sides)
                if (largest.need, how) == ("unsound", "other elements"):
                    break
        return worst

    def accept(self, instance: Instance) -> Instance | None:
        """`instance` with elements for which its sides differ, or ``None``."""
        for arrays in self._like(instance):
            if self._exactly(replace(instance, arrays=arrays)):
                return self.sides.instance
        for kind, sides in _runs(self.pattern, instance, self.declarations, _SEEDS):
            self.left -= 1
            if self.left < 0:
                return None
            if self._same(sides, kind):
                self.sides, self.kind = sides, kind
                return sides.instance
        return None

    def exactly(self, arrays: Mapping[str, Array]) -> bool:
        """Whether the sides differ for these elements, too; then they become `sides`."""
        return self._exactly(replace(self.sides.instance, arrays=arrays))

    def _like(self, instance: Instance) -> Iterator[Mapping[str, Array]]:
        """The elements of the last accepted instance, cut or repeated to fit `instance`."""
        before = self.sides.instance.arrays
        names = {n for v in before for d in instance.info(v).dims or () for n in dims.symbols(d)}
        sized = replace(instance, extents=dict.fromkeys(names, 2))
        for ordered in (_in_order, _backwards, _largest_first):
            arrays: dict[str, Array] = {}
            for leaf, array in before.items():
                elements = ordered(array.ravel()) if array.size else np.zeros(1, array.dtype)
                dtype = str(instance.info(leaf).dtype)
                with np.errstate(all="ignore"):
                    arrays[leaf] = np.resize(elements, extents_of(sized, leaf)).astype(dtype)
            yield arrays

    def _exactly(self, instance: Instance) -> bool:
        self.left -= 1
        rng = np.random.default_rng(0)
        if self.left < 0:
            return False
        program = program_of(instance, self.declarations)
        for sides in sides_of(self.pattern, program, self.kind, rng):
            if self._same(sides, self.kind):
                self.sides = sides
                return True
        return False

    def _same(self, sides: Sides, kind: Kind) -> bool:
        how, largest = _differ(sides, kind)
        if largest.need != self.wanted or how < self.how:
            return False
        self.how = how
        return True

    def difference(self) -> Difference:
        """The difference of `sides`."""
        _, worst = _differ(self.sides, self.kind)
        left, right = next(
            (pair for pair in _pairs(self.sides) if gap(*pair, self.kind) == worst), (None, None)
        )
        if left is None and isinstance(self.sides.left, Computed):
            left = self.sides.left
        return Difference(
            worst.need,
            (),
            None if left is None else left.value,
            None if right is None else right.value,
            worst.at,
            self.sides.why,
            self.kind,
            worst.ulps,
            worst.on,
        )


def differ(
    pattern: Direction,
    instance: Instance,
    declarations: Mapping[str, Declaration],
    seeds: int,
    allowed: Need,
) -> bool:
    """Whether the sides differ on `instance` by more than `allowed`; raises `Unknown`."""
    if not equated(pattern):
        return False
    most = ORDER.index(allowed)
    runs = _runs(pattern, instance, declarations, seeds)
    return any(ORDER.index(_differ(sides, kind)[1].need) > most for kind, sides in runs)


def _runs(
    pattern: Direction, instance: Instance, declarations: Mapping[str, Declaration], seeds: int
) -> Iterator[tuple[Kind, Sides]]:
    """Both sides for elements of every kind, first for the elements of the instance itself."""
    drawn = replace(instance, arrays={}, extents={})
    seen = [(0, instance)] if instance.arrays else []
    for seed, start in (*seen, *((k, drawn) for k in range(seeds))):
        program = program_of(start, declarations)
        for kind in dict.fromkeys(KINDS):
            rng = np.random.default_rng(seed)
            for sides in sides_of(pattern, program, kind, rng):
                yield kind, sides


def _pairs(sides: Sides) -> Iterator[tuple[Computed, Computed]]:
    left, right = sides.left, sides.right
    if isinstance(left, Computed) and isinstance(right, Computed):
        yield left, right
    elif isinstance(left, tuple) and isinstance(right, tuple):
        yield from zip(left, right, strict=False)


def _differ(sides: Sides, kind: Kind) -> tuple[How, Gap]:
    if kind == "nan" and not all(a.size for a in sides.instance.arrays.values()):
        return "other elements", Gap("exact")
    if sides.right is None:
        empty = isinstance(sides.left, Computed) and not sides.left.value.size
        return "no value", Gap("exact" if empty else "unsound")
    worst: tuple[How, Gap] = ("other elements", Gap("exact"))
    for a, b in _pairs(sides):
        here = gap(a, b, kind)
        if ORDER.index(here.need) > ORDER.index(worst[1].need):
            how: How = "other form"
            if here.at is not None:
                numbers = np.isfinite(a.value[here.at]) and np.isfinite(b.value[here.at])
                how = "other elements" if numbers else "no number"
            worst = how, here
    return worst


def _in_order(elements: Array) -> Array:
    return elements


def _backwards(elements: Array) -> Array:
    return elements[::-1]


def _largest_first(elements: Array) -> Array:
    return elements[np.argsort(-np.abs(elements.astype(np.float64)), kind="stable")]
