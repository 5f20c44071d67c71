"""Replay of a proof: re-execution of each step in numpy, on random values.

Both sides of each step are computed by the reference, in their own dtype and with float64 for
float32, and compared as in the check of rules (`verify.tolerance`), within the float class of the
step's rule.  Values that are equal to the last bit are shared from then on, so that few operators
are computed again.  Finally source and result are computed from the leaves, and compared as a
whole.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from relax_egraph.base.parameters import SEED, SIZES, instance, optional, takes
from relax_egraph.egraph.rulebook.rule import FloatClass
from relax_egraph.errors import ReplayError, RunError
from relax_egraph.ir.operators import in_force
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
    """The result of a replay: the number of `steps`, and of compared `values`.

    `error` is the largest difference, relative to the largest number of its step; `needs` is the
    float class that the steps need.  `kinds` are the kinds of random values, `sizes` the sizes of
    symbols.  `uncomputed` are the numbers of steps whose left side had no value in any instance.
    """

    steps: int
    values: int
    error: float
    needs: Need
    kinds: tuple[Kind, ...]
    sizes: Mapping[str, int]
    uncomputed: tuple[int, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The result as plain data."""
        return asdict(self)


@takes(
    trace=instance("one of the traces of an explanation", Trace), seed=SEED, sizes=optional(SIZES)
)
def replay(trace: Trace, *, seed: int = 0, sizes: Mapping[str, int] | None = None) -> Replayed:
    """Re-execute `trace`; the same seed draws the same values.

    Leaves have random values, constants their own.  Symbols have the extents in `sizes`, or small
    random ones that obey the assumptions.  Each term of the proof is computed once for each kind of
    values, in two precisions: usually that takes the time of about ten runs of the source in numpy,
    and the memory of all values at once.  A source of more than `LARGE` elements is replayed on one
    kind only.

    Raises `ReplayError`, which names the step, its rule and the values, if the two sides of a step
    differ by more than the rule's float class allows, if a step does not apply to the program
    before it, or if the last program is not the result.  Raises ``ValueError`` for `sizes` of
    unknown symbols, or `sizes` that contradict the assumptions.
    """
    with (trace.book.operators if trace.book else in_force()).in_force():
        return _replayed(trace, seed, sizes)


def _replayed(trace: Trace, seed: int, sizes: Mapping[str, int] | None) -> Replayed:
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
    trace: Trace, rng: np.random.Generator, fixed: Mapping[str, int] | None
) -> tuple[Sizes, Values]:
    """The first sizes with which the source runs, or else the last, and ordinary values."""
    tried: tuple[Sizes, Values] | None = None
    for sizes in sizes_of(trace, rng, fixed):
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
    """The state of a replay; `computed` are the steps whose sides were compared."""

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
        """Check the steps, then the whole, on random `values` of `kind`."""
        empty = any(p.value.size == 0 for v in values.instance.leaves.values() for p in parts_of(v))
        if kind == "nan" and empty:
            return  # a sum over no elements drops NaN
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
        gap = compared(*sides, around)
        self.error = max(self.error, gap.error)
        self.needs = _worse(self.needs, gap.need)
        if ORDER.index(gap.need) > ORDER.index(kept(stated)):
            a, b = (parts_of(side)[gap.part] for side in (before, after))
            classes = f"is stated {kept(stated)}, needs {gap.need}: " * (gap.need != "unsound")
            raise self._wrong(number, step, classes + _shown(a, b, gap.at))

    def _number(self, number: int, step: Step, of: Deduction, values: Values) -> None:
        """Check that a value is the number that a rule deduced for it."""
        if of.name != CONST_SCALAR or not values.has(of.row[0]):
            return
        term, scalar = of.row
        value = values.of(term)
        assert isinstance(value, Computed)
        deduced = constant(scalar, value.value.shape, value.value.dtype.name)
        gap = compared(value, deduced, values.around(term))
        stated = "reassociates" if of.rule not in self.trace.rules else self._stated(of.rule)
        if ORDER.index(gap.need) > ORDER.index(kept(stated)):
            why = _shown(value, deduced, gap.at, ("it", "the number"))
            known = self.trace.rules.get(of.rule)
            rest = (
                rule_text(self.trace, of.rule),
                f"deduced {deduction_text(self.trace, of)}",
                *step_lines(self.trace, step),
            )
            text = f"{self._place(number, step)}: what it reads is not so: {why}"
            raise ReplayError("\n  ".join((text, *rest)), (known.name if known else of.rule,))

    def _stated(self, rule: str) -> FloatClass:
        """The float class for a rule's deductions: at least `reassociates`, as they may round."""
        stated = self.trace.rules[rule].float_class
        return "reassociates" if stated in ("unstated", "exact") else stated

    def _within(self, step: Step, before: Result, after: Result, values: Values) -> bool:
        """Whether a matmul with a narrowed weight is within the tolerance of the function."""
        if step.before.op != "matmul":
            return False
        x, w = (values.of(t) for t in step.before.operands)
        match x, w, before, after:
            case Computed(), Computed(), Computed(), Computed():
                return within(x, w, before, after, self.trace.tolerance)
            case _:
                return False

    def _whole(self, values: Values) -> None:
        """Compare source and result, both computed from the leaves."""
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
        """The error that step `number`, or a step for its premises, does not hold, and `why`."""
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
        premise = ", a step of its premises" * (step not in self.trace.steps)
        return f"{_where(self.trace)}, step {number} of {len(self.trace.steps)}{premise}"


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
    """The text of two values at the place where they differ."""
    left, right = names
    if a.value.shape != b.value.shape or a.value.dtype != b.value.dtype:
        kinds = (f"{v.value.dtype}{v.value.shape}" for v in (a, b))
        return f"{left} is {next(kinds)}, {right} is {next(kinds)}"
    place = at or tuple(0 for _ in a.value.shape)
    where = f"at {list(place)} " * bool(place)
    return f"{where}{left} is {a.value[place]}, {right} is {b.value[place]}"
