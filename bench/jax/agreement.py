"""Whether a function of jax agrees with jax itself, once imported, optimized, built and run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import export

import relax_egraph as rx
from bench.jax.example import Example, Input
from relax_egraph.errors import RelaxEgraphError

SIZES = ({"b": 3, "s": 5, "n": 6, "m": 4}, {"b": 1, "s": 2, "n": 9, "m": 2})
"""The sizes that symbols have, one after the other."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a program: the `reason` is empty if it agrees."""

    name: str
    kind: str
    reason: str


def outcomes(example: Example) -> list[Outcome]:
    """The outcomes with static sizes, and with symbolic ones if the example has any."""
    kinds = ["static"]
    if any(isinstance(n, str) for i in example.inputs for n in i.shape):
        kinds.append("symbolic")
    return [Outcome(example.name, kind, _reason(example, kind == "symbolic")) for kind in kinds]


def _reason(example: Example, symbolic: bool) -> str:
    scope = export.SymbolicScope()
    names = sorted({n for i in example.inputs for n in i.shape if isinstance(n, str)})
    symbols = (
        dict(zip(names, export.symbolic_shape(", ".join(names), scope=scope), strict=True))
        if names
        else {}
    )
    sizes = symbols if symbolic else SIZES[0]
    specs = [
        jax.ShapeDtypeStruct(tuple(sizes[n] if isinstance(n, str) else n for n in i.shape), i.dtype)
        for i in example.inputs
    ]
    try:
        module = rx.from_jax(example.function, *specs)
        main = rx.VirtualMachine(rx.build(rx.optimize(module)), num_threads=1)["main"]
        for number, bound in enumerate(SIZES if symbolic else SIZES[:1]):
            rng = np.random.default_rng(number)
            arrays = [_array(i, bound, rng) for i in example.inputs]
            want = jax.tree.leaves(jax.jit(example.function)(*arrays))
            if reason := difference(main(*arrays), want, example.relative):
                return f"{reason}, sizes {bound}" if symbolic else reason
    except RelaxEgraphError as refusal:
        return f"{type(refusal).__name__}: {str(refusal).splitlines()[-1].strip()}"
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""


def _array(spec: Input, sizes: dict[str, int], rng: np.random.Generator) -> Any:
    if spec.values is not None:
        return np.asarray(spec.values, spec.dtype)
    shape = tuple(sizes[n] if isinstance(n, str) else n for n in spec.shape)
    if np.dtype(spec.dtype).kind in "iu":
        return rng.integers(0, spec.most, shape).astype(spec.dtype)
    return np.asarray(
        rng.standard_normal(shape) / max(1, np.sqrt(np.prod(shape[:-1]) / 8)), spec.dtype
    )


def difference(own: Any, want: Sequence[Any], relative: float) -> str:
    """How `own` results differ from those that are wanted; empty if they agree."""
    results = list(own) if isinstance(own, tuple) else [own]
    if len(results) != len(want):
        return f"{len(results)} results instead of {len(want)}"
    for place, (got, expected) in enumerate(zip(results, map(np.asarray, want), strict=True)):
        got = np.asarray(got)
        if got.dtype != expected.dtype or got.shape != expected.shape:
            has, wants = (f"{a.dtype}{list(a.shape)}" for a in (got, expected))
            return f"result {place} is {has}, wants {wants}"
        if np.dtype(expected.dtype).kind in "iub":
            if not np.array_equal(got, expected):
                return f"result {place}: {np.sum(got != expected)} of {got.size} integers differ"
            continue
        tolerance = relative if expected.dtype.itemsize >= 4 else 2e-2
        a, b = got.astype(np.float64), expected.astype(np.float64)
        if not np.allclose(a, b, rtol=tolerance, atol=tolerance / 10, equal_nan=True):
            return f"result {place} is off by {np.nanmax(np.abs(a - b)):.2g}"
    return ""
