"""What the classes of an e-graph compute: every node, of random inputs, against its class's value.

The value of a class is that of the program's step that is in it, computed as the program says;
of a class that only rules made, that of its first node that can be computed.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from relax_egraph.egraph import view
from relax_egraph.egraph.tables import Key, Term
from relax_egraph.egraph.trial import Trial
from relax_egraph.egraph.vocabulary import operators
from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.evaluate import apply_op
from relax_egraph.ir.expr import PrimValue
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import ShapeStructInfo
from relax_egraph.verify.canonical import once_rounded
from relax_egraph.verify.inputs import Array, Kind, random_array
from relax_egraph.verify.program import Program, Step, host_value
from relax_egraph.verify.tolerance import ORDER, Computed, Need, need

Result = Computed | tuple[Computed, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """Two values of one class; or a node that has none, and then `problem` says why.

    `steps` are the numbers of the program's values in the class, or in those that are made of it.
    """

    need: Need
    steps: tuple[int, ...]
    left: Array | None
    right: Array | None
    at: tuple[int, ...] | None
    problem: str = ""
    kind: Kind = "ordinary"


@dataclass(slots=True)
class Evaluation:
    """One run on random inputs: `extents` of the symbols, and the values of leaves by number."""

    program: Program
    extents: Mapping[str, int]
    kind: Kind
    rng: np.random.Generator
    values: dict[int, Result] = field(default_factory=dict[int, Result])
    compared: set[int] = field(default_factory=set[int])
    """The numbers of the steps whose class has a second value that was compared."""

    def differences(self, trial: Trial) -> Iterator[Difference]:
        """How the classes of `trial` differ within themselves, but for what is exact."""
        for step in self.program.steps:
            self.compute(step)
        classes = _Classes(self, trial)
        yield from classes.differences()

    def compute(self, step: Step) -> None:
        """Compute a step of the program, if what it needs could be."""
        given = self.values.get
        try:
            result = self.result(step, given)
        except (RunError, KeyError, OverflowError, TypeError):
            return
        if result is not None:
            self.values[step.number] = result

    def result(self, step: Step, given: Callable[[int], Result | None]) -> Result | None:
        """What `step` gives, of the results `given` of others; ``None`` if one is missing."""
        match step.how:
            case "leaf" | "const":
                assert step.info is not None
                return self.leaf(step)
            case "none":
                return None
            case "same":
                return given(step.children[0])
            case "tuple_get":
                whole = given(step.children[0])
                ((_, at),) = step.attrs
                return whole[int(at)] if isinstance(whole, tuple) and isinstance(at, int) else None
            case Op() as op:
                return self.apply(op, step.children, dict(step.attrs), given)
            case other:
                raise ValueError(other)

    def leaf(self, step: Step) -> Computed:
        """A random value, or the one that the step says."""
        assert step.info is not None
        shape = tuple(dims.evaluate(d, self.extents) for d in step.info.dims or ())
        dtype = str(step.info.dtype)
        if step.scalar is not None:
            return constant(step.scalar, shape, dtype)
        value = random_array(self.rng, shape, dtype, self.kind, step.constant)
        wide = value.astype(np.float64) if is_float(value.dtype.name) else value
        return Computed(value, wide, magnitude(wide))

    def apply(
        self,
        op: Op,
        children: tuple[Any, ...],
        attrs: dict[str, Any],
        given: Callable[[Any], Result | None],
    ) -> Result | None:
        """What `op` gives, in its dtype and in float64."""
        narrow: list[Any] = []
        wide: list[Any] = []
        scales = [0.0]
        for child in children:
            match child:
                case None:
                    narrow.append(None)
                    wide.append(None)
                case ShapeStructInfo(values=values):
                    shape = tuple(dims.evaluate(d, self.extents) for d in values or ())
                    narrow.append(shape)
                    wide.append(shape)
                case PrimValue():
                    number = host_value(child, self.extents)
                    narrow.append(number)
                    wide.append(number)
                case tuple() if not isinstance(child, Key):
                    parts = [given(c) for c in child]
                    known = [p for p in parts if isinstance(p, Computed)]
                    if len(known) != len(parts):
                        return None
                    narrow.append(tuple(p.value for p in known))
                    wide.append(tuple(p.wide for p in known))
                    scales += [p.scale for p in known]
                case _:
                    one = given(child)
                    if not isinstance(one, Computed):
                        return None
                    narrow.append(one.value)
                    wide.append(one.wide)
                    scales.append(one.scale)
        while narrow and narrow[-1] is None:
            narrow.pop()
            wide.pop()
        value = once_rounded(op, narrow, attrs)
        if any(a is not b for a, b in zip(narrow, wide, strict=True)) or _says_float32(attrs):
            other = apply_op(op, wide, widened(attrs))
        else:
            other = value
        if isinstance(value, tuple) and isinstance(other, tuple):
            return tuple(computed(v, w, scales) for v, w in zip(value, other, strict=True))
        return computed(value, other, scales)


def computed(value: Any, wide: Any, scales: list[float]) -> Computed:
    """A result, of operands of magnitudes `scales`."""
    return Computed(np.asarray(value), np.asarray(wide), max(*scales, magnitude(np.asarray(wide))))


def constant(number: float, shape: tuple[int, ...], dtype: str) -> Computed:
    """A tensor whose elements are `number`."""
    with np.errstate(all="ignore"):
        value = np.full(shape, number).astype(dtype)
    wide = np.full(shape, number) if is_float(value.dtype.name) else value
    return Computed(value, wide, magnitude(wide))


def magnitude(x: Array) -> float:
    """The largest finite number in `x`; 0 of none."""
    if not is_float(x.dtype.name) or not x.size:
        return 0.0
    size = np.abs(x)
    return float(np.max(size, initial=0.0, where=np.isfinite(size)))


def _says_float32(attrs: Mapping[str, Any]) -> bool:
    return any(v == "float32" for v in attrs.values())


def widened(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """`attrs` with float64 for float32."""
    return {k: "float64" if v == "float32" and k.endswith("dtype") else v for k, v in attrs.items()}


class _Classes:
    """The classes of a trial, each with the value that its other nodes must have."""

    def __init__(self, run: Evaluation, trial: Trial) -> None:
        self.run, self.trial = run, trial
        self.steps: dict[Key, list[int]] = defaultdict(list)
        by_number = {s.number: s for s in run.program.steps}
        for number, key in sorted(trial.values.items()):
            if number in by_number:
                self.steps[key].append(number)
        for numbers in self.steps.values():
            numbers.sort(key=lambda n: n not in trial.matched)
        self.values: dict[Key, Result] = {}
        self.own: dict[Key, set[tuple[str, tuple[Any, ...], tuple[Any, ...]]]] = defaultdict(set)
        for key, numbers in self.steps.items():
            known = [run.values[n] for n in numbers if n in run.values]
            if known:
                self.values[key] = known[0]
            for n in numbers:
                self.own[key].add(self.signature(by_number[n]))

    def signature(self, step: Step) -> tuple[str, tuple[Any, ...], tuple[Any, ...]]:
        """What node a step is."""
        keys = self.trial.values
        children = tuple(
            keys.get(c)
            if isinstance(c, int)
            else tuple(keys.get(t) for t in c)
            if isinstance(c, tuple)
            else c
            for c in step.children
        )
        name = step.how.name if isinstance(step.how, Op) else step.how
        return name, children, step.attrs

    def differences(self) -> Iterator[Difference]:
        for numbers in self.steps.values():
            known = [n for n in numbers if n in self.run.values]
            for n in known[1:]:
                if self.run.values[n] is not self.run.values[known[0]]:
                    yield from self.compare(numbers, self.run.values[known[0]], self.run.values[n])
        for key, number in self.trial.scalars.items():
            value = self.values.get(key)
            if isinstance(value, Computed) and not self.said(key):
                same = constant(number, value.value.shape, value.value.dtype.name)
                yield from self.compare(self.steps[key], value, same)
        waiting = [(k, t) for k, t in self.trial.nodes if t.op not in (view.LEAF, view.OPAQUE)]
        broken: dict[Key, str] = {}
        progress = True
        while waiting and progress:
            progress, rest = False, []
            for key, term in waiting:
                try:
                    result = self.of(key, term)
                except (RunError, KeyError, OverflowError, TypeError) as problem:
                    progress = True
                    if (term.op, term.children, term.attrs) not in self.own[key]:
                        broken.setdefault(key, f"R.{term.op} cannot be computed: {problem}")
                    continue
                if result is None:
                    rest.append((key, term))
                    continue
                progress = True
                if key not in self.values:
                    self.values[key] = result
                elif (term.op, term.children, term.attrs) not in self.own[key]:
                    near = self.steps.get(key) or self.near(key)
                    yield from self.compare(near, self.values[key], result)
            waiting = rest
        yield from self.failures(waiting, broken)

    def said(self, key: Key) -> bool:
        """Whether the program says that the elements of this class are one number."""
        by_number = self.run.program.steps
        return any(by_number[n].scalar is not None for n in self.steps[key])

    def failures(
        self, waiting: list[tuple[Key, Term]], broken: dict[Key, str]
    ) -> Iterator[Difference]:
        """The values that a node cannot give: it, or what it needs, cannot be computed."""
        reached = {k: why for k, why in broken.items() if k not in self.values}
        grown = True
        while grown:
            grown = False
            for key, term in waiting:
                why = next((reached[c] for c in term.classes if c in reached), None)
                if why is not None and key not in reached:
                    if key in self.values:
                        broken.setdefault(key, why)
                    else:
                        reached[key] = why
                        grown = True
        for key, why in broken.items():
            if key in self.values and self.steps.get(key):
                value = self.values[key]
                left = value.value if isinstance(value, Computed) else None
                if left is None or left.size:
                    yield Difference(
                        "unsound", tuple(self.steps[key]), left, None, None, why, self.run.kind
                    )

    def near(self, key: Key) -> list[int]:
        """The steps in the class, or else in classes over it."""
        reached, seen = [key], {key}
        for k in reached:
            if self.steps.get(k):
                return self.steps[k]
            above = [p for p in self.over.get(k, ()) if p not in seen]
            seen.update(above)
            reached += above
        return []

    @cached_property
    def over(self) -> Mapping[Key, list[Key]]:
        """The classes whose nodes need a class."""
        found: dict[Key, list[Key]] = defaultdict(list)
        for key, term in self.trial.nodes:
            for child in term.classes:
                found[child].append(key)
        return found

    def compare(self, numbers: list[int], left: Result, right: Result) -> Iterator[Difference]:
        if isinstance(left, tuple) or isinstance(right, tuple):
            if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
                for a, b in zip(left, right, strict=True):
                    yield from self.compare(numbers, a, b)
            return
        self.run.compared.update(numbers)
        needed, at = need(left, right, self.run.kind)
        if needed != "exact":
            yield Difference(
                needed, tuple(numbers), left.value, right.value, at, kind=self.run.kind
            )

    def of(self, key: Key, term: Term) -> Result | None:
        given = self.values.get
        match term.op:
            case view.SCALAR:
                dtype = self.trial.dtypes.get(key, "float32")
                return constant(term.scalar, (), dtype)
            case view.LOAD | view.STORE:
                return given(term.classes[0])
            case view.TUPLE_GET:
                whole = given(term.classes[0])
                ((_, at),) = term.attrs
                return whole[int(at)] if isinstance(whole, tuple) and isinstance(at, int) else None
            case view.WHOLE:
                return None
            case name:
                op = operators()[name].op
                return self.run.apply(op, term.children, dict(term.attrs), given)


def worst(differences: list[Difference]) -> Difference | None:
    """The difference that needs the most."""
    return max(differences, key=lambda d: ORDER.index(d.need), default=None)
