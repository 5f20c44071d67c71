"""A proof is re-executed: each step in numpy, on random values.

The two sides of each step are computed by the reference, in their own dtype and with float64 for
float32, and compared as rules are (`verify.tolerance`), each held to the float class of its rule.
What is the same to the last bit counts as one from then on, so that few operators are computed
again.  At last source and result are computed anew,
from the leaves, and compared as wholes.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from relax_egraph.base.parameters import SEED, SIZES, instance, optional, takes
from relax_egraph.egraph.rulebook.rule import FloatClass
from relax_egraph.errors import ReplayError, RunError
from relax_egraph.proof.agreement import (
    Around,
    agree,
    compared,
    parts_of,
    together,
    within,
)
from relax_egraph.proof.deduced import CONST_SCALAR
from relax_egraph.proof.difference import Difference, all_steps, difference
from relax_egraph.proof.float_classes import float_classes
from relax_egraph.proof.history import History
from relax_egraph.proof.instance import Sizes, sizes_of
from relax_egraph.proof.suspects import suspects
from relax_egraph.proof.term import post_order
from relax_egraph.proof.text import deduced_lines, deduction_text, rule_text, step_lines
from relax_egraph.proof.trace import Deduction, Step, Trace
from relax_egraph.proof.values import Values
from relax_egraph.verify.values.applied import Result, constant
from relax_egraph.verify.values.inputs import Kind
from relax_egraph.verify.values.tolerance import ORDER, Computed, Need, kept

KINDS: tuple[Kind, ...] = ("ordinary", "large", "nan", "infinite")

LARGE = 2_000_000
"""A source of more elements than these is replayed on ordinary values only."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What was checked of a trace: `steps`, of which so many `values` were compared.

    `error` is the largest difference that was seen, as part of the largest number of its step;
    `needs` is the float class that the steps needed.  It ran on values of these `kinds`, at these
    `sizes` of symbols.  Steps with these numbers were not computed: on all values that were drawn
    what they are applied to has no value.
    """

    steps: int
    values: int
    error: float
    needs: Need
    kinds: tuple[Kind, ...]
    sizes: Mapping[str, int]
    uncomputed: tuple[int, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)


@takes(
    trace=instance("one of the traces of an explanation", Trace), seed=SEED, sizes=optional(SIZES)
)
def replay(trace: Trace, *, seed: int = 0, sizes: Mapping[str, int] | None = None) -> Replayed:
    """Re-execute `trace`; the same seed draws the same values.

    Leaves have random values, constants their own; symbols have small extents that obey what is
    assumed of them, or those of `sizes`.  Each term of the proof is computed once for each kind of
    values, in two precisions: mostly that takes as long as some ten runs of the source in numpy,
    and the memory of all values at once.  A source of more than `LARGE` elements is replayed on one
    kind.

    Raises `ReplayError`, which names the step, its rule and the values, if the two sides of a step
    differ by more than the rule's float class allows, if a step does not apply to the program
    before it, or if the last program is not the result; ``ValueError`` for `sizes` of symbols that
    there are not, or that contradict what is assumed.
    """
    History(trace)
    run = _Replay(trace)
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        chosen, first = _first(trace, rng, sizes)
        kinds = KINDS if _elements(trace, first) <= LARGE else KINDS[:1]
        for kind in kinds:
            run.on(kind, Values(chosen.instance(trace, kind, rng)) if kind != "ordinary" else first)
    missing = tuple(k for k, step in enumerate(trace.steps, 1) if step not in run.computed)
    used = dict(chosen.extents)
    return Replayed(len(trace.steps), run.values, run.error, run.needs, kinds, used, missing)


def _first(
    trace: Trace, rng: np.random.Generator, given: Mapping[str, int] | None
) -> tuple[Sizes, Values]:
    """Sizes with which the source runs, if there are such, and ordinary values of them."""
    tried: tuple[Sizes, Values] | None = None
    for sizes in sizes_of(trace, rng, given):
        tried = sizes, Values(sizes.instance(trace, "ordinary", rng))
        if tried[1].has(trace.source):
            break
    if tried is None:
        raise ReplayError(f"{_where(trace)}: no sizes were found with which shapes have extents")
    return tried


def _elements(trace: Trace, values: Values) -> int:
    known = (values.of(t) for t in post_order(trace.source) if values.has(t))
    return sum(part.value.size for result in known for part in parts_of(result))


@dataclass(slots=True)
class _Replay:
    """What was seen so far; `computed` are the steps whose sides were compared."""

    trace: Trace
    values: int = 0
    error: float = 0.0
    needs: Need = "exact"
    computed: set[Step] = field(default_factory=set[Step])
    differences: dict[Step, Difference] = field(default_factory=dict[Step, Difference])
    classes: dict[Step, FloatClass] = field(default_factory=dict[Step, FloatClass])

    def __post_init__(self) -> None:
        self.differences = {step: difference(step) for step in all_steps(self.trace.steps)}
        self.classes = float_classes(self.trace)

    def on(self, kind: Kind, values: Values) -> None:
        """Check the steps, then the whole, on `values` that were drawn of `kind`."""
        empty = any(p.value.size == 0 for v in values.instance.leaves.values() for p in parts_of(v))
        if kind == "nan" and empty:
            return  # a sum over no elements loses what is not a number
        for number, whole in enumerate(self.trace.steps, 1):
            for step in all_steps([whole]):
                for one in step.deduced:
                    self._number(number, step, one, values)
                self._step(number, step, values)
                values.unite(step.before, step.after)
        if kind == "ordinary":
            self._whole(values)

    def _step(self, number: int, step: Step, values: Values) -> None:
        if values.number(step.before) == values.number(step.after):
            if values.has(step.before):
                self.computed.add(step)
            return
        try:
            before = values.of(step.before)
        except RunError:
            return
        try:
            after = values.of(step.after)
        except RunError as problem:
            raise self._wrong(number, step, f"after has no value: {problem}") from None
        self.computed.add(step)
        self.values += sum(part.value.size for part in parts_of(before))
        stated = self.classes[step]
        if stated == "bounded" and self._within(step, before, after, values):
            return
        around = together(values.around(t) for t in self.differences[step].terms)
        sides = (after, before) if step.backwards else (before, after)
        found = compared(*sides, around)
        self.error = max(self.error, found.error)
        self.needs = _worse(self.needs, found.need)
        if ORDER.index(found.need) > ORDER.index(kept(stated)):
            a, b = (parts_of(side)[found.part] for side in (before, after))
            said = f"is stated {kept(stated)}, needs {found.need}: " * (found.need != "unsound")
            raise self._wrong(number, step, said + _shown(a, b, found.at))

    def _number(self, number: int, step: Step, of: Deduction, values: Values) -> None:
        """Check that a value is the number that a rule deduced of it."""
        if of.name != CONST_SCALAR or not values.has(of.row[0]):
            return
        term, said = of.row
        value = values.of(term)
        assert isinstance(value, Computed)
        same = constant(said, value.value.shape, value.value.dtype.name)
        found = compared(value, same, values.around(term))
        stated = "reassociates" if of.rule not in self.trace.rules else self._stated(of.rule)
        if ORDER.index(found.need) > ORDER.index(kept(stated)):
            why = _shown(value, same, found.at, ("it", "the number"))
            known = self.trace.rules.get(of.rule)
            rest = (
                rule_text(self.trace, of.rule),
                f"deduced {deduction_text(self.trace, of)}",
                *step_lines(self.trace, step),
            )
            text = f"{self._place(number, step)}: what it reads is not so: {why}"
            raise ReplayError("\n  ".join((text, *rest)), (known.name if known else of.rule,))

    def _stated(self, rule: str) -> FloatClass:
        """The class to which what a rule deduces is held: it may be rounded at the least."""
        stated = self.trace.rules[rule].float_class
        return "reassociates" if stated in ("unstated", "exact") else stated

    def _within(self, step: Step, before: Result, after: Result, values: Values) -> bool:
        """Whether a product with other weights is within the tolerance of the function."""
        if step.before.op != "matmul":
            return False
        x, w = (values.of(t) for t in step.before.operands)
        match x, w, before, after:
            case Computed(), Computed(), Computed(), Computed():
                return within(x, w, before, after, self.trace.tolerance)
            case _:
                return False

    def _whole(self, values: Values) -> None:
        """Compare source and result, computed from the leaves, if these have values."""
        if not values.has(self.trace.source):
            return
        trace = self.trace
        anew = Values(values.instance, values.reads)
        source = values.of(trace.source)
        try:
            result = anew.of(trace.result)
        except RunError as problem:
            raise ReplayError(f"{_where(trace)}: the result has no value: {problem}") from None
        lossy = sum(self.classes[step] == "bounded" for step in trace.steps)
        if not agree(source, result, 10 * lossy * trace.tolerance):
            at = compared(source, result, Around()).at
            (a, *_), (b, *_) = parts_of(source), parts_of(result)
            shown = _shown(a, b, at, ("the source", "the result"))
            raise ReplayError(f"{_where(trace)}: each step holds, and not the whole: {shown}")

    def _wrong(self, number: int, step: Step, why: str) -> ReplayError:
        """The error that step `number`, or one that is given to it, does not hold, and `why`."""
        wrong = suspects(self.trace, step)
        lines = [
            f"{self._place(number, step)}: {why}",
            rule_text(self.trace, step.rule),
            *deduced_lines(self.trace, step),
            *filter(None, (wrong.text,)),
            *step_lines(self.trace, step),
        ]
        return ReplayError("\n  ".join(lines), wrong.names)

    def _place(self, number: int, step: Step) -> str:
        given = ", what is given to it" * (step not in self.trace.steps)
        return f"{_where(self.trace)}, step {number} of {len(self.trace.steps)}{given}"


def _worse(a: Need, b: Need) -> Need:
    return a if ORDER.index(a) >= ORDER.index(b) else b


def _where(trace: Trace) -> str:
    return f"{trace.function}, output {trace.output}"


def _shown(
    a: Computed,
    b: Computed,
    at: tuple[int, ...] | None,
    names: tuple[str, str] = ("before", "after"),
) -> str:
    """Two values, where they differ."""
    left, right = names
    if a.value.shape != b.value.shape or a.value.dtype != b.value.dtype:
        kinds = (f"{v.value.dtype}{v.value.shape}" for v in (a, b))
        return f"{left} is {next(kinds)}, {right} is {next(kinds)}"
    place = at or tuple(0 for _ in a.value.shape)
    where = f"at {list(place)} " * bool(place)
    return f"{where}{left} is {a.value[place]}, {right} is {b.value[place]}"
