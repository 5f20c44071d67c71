"""The comparison of all values in the classes of a trial, by instance."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import numpy as np

from relax_egraph.egraph.recording.trial import Trial
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.ir import dims
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.values.classes import Classes, Difference
from relax_egraph.verify.values.evaluation import Evaluation
from relax_egraph.verify.values.inputs import KINDS, Array, Kind
from relax_egraph.verify.values.program import Program
from relax_egraph.verify.values.tolerance import ORDER, Computed, Need, gap, kept

_NUMBERS = ("ordinary", "large")
"""Kinds of values on which two sides may differ by their rounding."""

_RANDOM_ROUNDINGS = 8
"""Runs with random rounding that estimate the rounding error of a value."""

_USUAL, _UNUSUAL = (2, 3, 5), (0, 1, 2, 5)
"""Extents of symbols: for the first run and the run on NaN; and one for each of the other runs."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """An instance with two values in one class; `seen` is the instance with its elements."""

    instance: Instance
    difference: Difference
    seen: Instance

    @property
    def exceeds(self) -> bool:
        """Whether the difference is worse than the rules of the instance state."""
        allowed = max(ORDER.index(stated(rule)) for rule in self.instance.rules)
        return ORDER.index(self.difference.need) > allowed

    def beside(self, other: Difference) -> "Wrong":
        """The instance with the merged difference of this one and another of the same need."""
        ulps = max(self.difference.ulps, other.ulps)
        both = replace(self.difference, ulps=ulps, on=self.difference.on | other.on)
        return replace(self, difference=both)


def compare(
    program: Program, trial: Trial, random: Random, kinds: Sequence[Kind] = KINDS
) -> tuple[set[int], list[Wrong]]:
    """The indices of the instances whose classes were compared, and the wrong instances."""
    of_step = {s.number: s.instance for s in program.steps}
    compared: set[int] = set()
    wrong: dict[tuple[int, Need], Wrong] = {}
    fixed = {n: e for i in program.instances for n, e in i.extents.items()}
    orders = {n: _order(kinds, random) for n in program.symbols}
    for k, kind in enumerate(kinds):
        seed = random.getrandbits(32)
        extents = {n: orders[n][k] for n in program.symbols} | fixed
        run = _Run(program, trial, extents, kind, seed)
        for difference in run.differences():
            for at in {of_step[n] for n in difference.steps}:
                instance = program.instances[at]
                if kind == "nan" and _has_empty(instance, extents):
                    continue
                known = wrong.get((at, difference.need))
                wrong[at, difference.need] = (
                    known.beside(difference)
                    if known
                    else Wrong(instance, difference, _seen(run.evaluation, at))
                )
        compared |= {of_step[n] for n in run.classes.compared}
    return compared, list(wrong.values())


def _order(kinds: Sequence[Kind], random: Random) -> list[int]:
    """The extent of a symbol in each run."""
    unusual = iter(random.sample(_UNUSUAL, len(_UNUSUAL)))
    usual = random.choice(_USUAL)
    return [
        usual if k == 0 or kind == "nan" else next(unusual, usual) for k, kind in enumerate(kinds)
    ]


@dataclass(slots=True)
class _Run:
    """One computation of the classes of a trial."""

    program: Program
    trial: Trial
    extents: Mapping[str, int]
    kind: Kind
    seed: int
    evaluation: Evaluation = field(init=False)
    classes: Classes = field(init=False)

    def differences(self) -> Iterator[Difference]:
        """The differences within classes, with random rounding to tell rounding from more."""
        self.evaluation, self.classes = self.computed(None)
        noise: Sequence[Array] | None = None
        for difference in tuple(self.classes.differences()):
            if difference.need != "fast" or self.kind not in _NUMBERS:
                yield difference
                continue
            noise = self.noise() if noise is None else noise
            pair = self.classes.pairs[difference.pair]
            less = gap(*pair, self.kind, noise[difference.pair])
            yield replace(difference, need=less.need, at=less.at, ulps=less.ulps)

    def computed(self, jitter: np.random.Generator | None) -> tuple[Evaluation, Classes]:
        rng = np.random.default_rng((self.seed, 1))
        run = Evaluation(self.program, self.extents, self.kind, rng, jitter)
        run.compute()
        return run, Classes(run, self.trial)

    def noise(self) -> Sequence[Array]:
        """The rounding error of each pair of values, estimated by random rounding."""
        pairs = self.classes.pairs
        most = [np.zeros(right.value.shape) for _, right in pairs]
        for k in range(_RANDOM_ROUNDINGS):
            _, classes = self.computed(np.random.default_rng((self.seed, 2, k)))
            for _ in classes.differences():
                pass  # the iteration fills `pairs`
            for at, ((a, b), (c, d)) in enumerate(zip(pairs, classes.pairs, strict=False)):
                if a.value.shape == b.value.shape:
                    most[at] = np.maximum(most[at], _apart(a, c) + _apart(b, d))
        return most


def _apart(a: Computed, b: Computed) -> Array:
    with np.errstate(all="ignore"):
        off = np.abs(b.value.astype(np.float64) - a.value.astype(np.float64))
    return np.where(np.isnan(off), 0, off)


def _seen(run: Evaluation, at: int) -> Instance:
    """Instance number `at` with the elements of its leaves and the extents of its symbols."""
    instance = run.program.instances[at]
    leaves = [s for s in run.program.steps if s.instance == at and s.is_leaf]
    values = {s.variable: run.values.get(s.number) for s in leaves if s.scalar is None}
    arrays = {v: c.value for v, c in values.items() if isinstance(c, Computed)}
    infos = [s.info for s in leaves if s.info is not None]
    symbols = {n for i in infos for d in i.dims or () for n in dims.symbols(d)}
    return replace(instance, arrays=arrays, extents={n: run.extents[n] for n in sorted(symbols)})


def _has_empty(instance: Instance, extents: Mapping[str, int]) -> bool:
    """Whether a tensor has no elements: a sum over no elements loses a NaN."""
    infos = (instance.info(v) for v in instance.problem.shapes if v in instance.problem.needed)
    known = (d for i in infos for d in i.dims or () if dims.symbols(d) <= extents.keys())
    return any(dims.evaluate(d, extents) == 0 for d in known)


def stated(rule: Rule) -> Need:
    """The float class that a rule must keep."""
    return kept(rule.float_class)
