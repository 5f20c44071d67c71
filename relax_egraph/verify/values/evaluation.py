"""What a program computes of random inputs, in its own dtypes and in float64."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relax_egraph.egraph.narrowing import stored
from relax_egraph.egraph.tables import Key
from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.dtypes import is_float, is_stored, limits
from relax_egraph.ir.expr import PrimValue
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import ShapeStructInfo
from relax_egraph.verify.values.canonical import once_rounded
from relax_egraph.verify.values.inputs import Array, Kind, random_array
from relax_egraph.verify.values.program import Program, Step, host_value
from relax_egraph.verify.values.tolerance import Computed

Result = Computed | tuple[Computed, ...]


@dataclass(slots=True)
class Evaluation:
    """One run on random inputs: `extents` of the symbols, and the values of leaves by number.

    What is `shaken` is rounded at random: each element that an operator rounds is off by up to
    another unit in its last place, as in Monte Carlo arithmetic (Parker, 1997).
    """

    program: Program
    extents: Mapping[str, int]
    kind: Kind
    rng: np.random.Generator
    shaken: np.random.Generator | None = None
    values: dict[int, Result] = field(default_factory=dict[int, Result])

    def compute(self) -> None:
        """Compute the steps of the program, as far as what they need can be."""
        for step in self.program.steps:
            try:
                result = self.result(step, self.values.get)
            except (RunError, KeyError, OverflowError, TypeError):
                continue
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
        """A random value, or the one that the step or its instance says.

        Raises `RunError` if the shape is of no tensor: n - 1 where n is 0.
        """
        assert step.info is not None
        shape = tuple(dims.evaluate(d, self.extents) for d in step.info.dims or ())
        dtype = str(step.info.dtype)
        if min(shape, default=0) < 0:
            raise RunError(f"there is no tensor of shape {shape}")
        if step.scalar is not None:
            return constant(step.scalar, shape, dtype)
        known = self.program.instances[step.instance].arrays.get(step.variable)
        if known is not None and known.shape == shape and known.dtype.name == dtype:
            value = known
        else:
            value = random_array(self.rng, shape, dtype, self.kind, step.constant)
        for narrow, axis in step.narrow:
            value = stored(value, narrow, axis)
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
        if any(a is not b for a, b in zip(narrow, wide, strict=True)) or _says_float(attrs):
            other = apply_op(op, wide, widened(attrs))
        else:
            other = value
        if isinstance(value, tuple) and isinstance(other, tuple):
            pairs = zip(value, other, strict=True)
            return tuple(computed(self.rounded(v, w), w, scales) for v, w in pairs)
        return computed(self.rounded(value, other), other, scales)

    def rounded(self, value: Any, wide: Any) -> Any:
        """`value`, shaken where it is not what `wide` says, which it is where nothing is lost."""
        if self.shaken is None or not isinstance(value, np.ndarray):
            return value
        dtype = value.dtype.name
        if not is_float(dtype) or is_stored(dtype) or not value.size:
            return value
        with np.errstate(all="ignore"):
            unit = np.abs(value.astype(np.float64)) * float(limits(dtype).eps)
            inexact = np.isfinite(value) & (value.astype(np.float64) != wide)
            off = np.where(inexact, unit * self.shaken.uniform(-1, 1, value.shape), 0)
            return (value.astype(np.float64) + off).astype(value.dtype)


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


def _says_float(attrs: Mapping[str, Any]) -> bool:
    return any(isinstance(v, str) and v != "float64" and is_float(v) for v in attrs.values())


def widened(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """`attrs` with float64 for every floating-point dtype."""
    return {
        k: "float64" if k.endswith("dtype") and isinstance(v, str) and is_float(v) else v
        for k, v in attrs.items()
    }
