"""Random programs of slices, splits, joins and reshapes compute what they did before rules."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pytest

import relax_egraph as rx
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.rules import FAMILIES

TRIED = ("shape", "slices", "movement")
FEW, MANY = 20, 60
EXTENTS = ((3, 2), (1, 0), (0, 5))
"""Values of n and m."""

CHAINED = frozenset(
    (
        *("slice-of-slice", "slices-in-order", "slices-at-once", "piece-next"),
        *("slice-of-concat", "slice-of-stack"),
        *("side-by-side-next", "concat-of-slices", "slice-of-extents", "take-from-end"),
    )
)
"""Rules about chains of operators: every one of them is to match in some of the programs."""

Array: TypeAlias = npt.NDArray[Any]
Extent: TypeAlias = tuple[int, int, int]
"""``a·n + b·m + c``."""


def _text(extent: Extent) -> str:
    terms = [f"{k} * {name}" for k, name in zip(extent, ("n", "m"), strict=False) if k]
    return " + ".join([*terms, str(extent[2])])


@dataclass
class _Writer:
    """A program line by line, and the shape of each of its tensors."""

    random: Random
    shapes: dict[str, tuple[Extent, ...]] = field(default_factory=dict[str, tuple[Extent, ...]])
    lines: list[str] = field(default_factory=list[str])

    def emit(self, value: str, shape: Sequence[Extent]) -> str:
        name = f"v{len(self.shapes)}"
        self.lines.append(f"{name} = {value}")
        self.shapes[name] = tuple(shape)
        return name

    def any(self) -> tuple[str, tuple[Extent, ...], int]:
        """A tensor of rank 1 or more, its shape, and one of its axes; often one of the latest."""
        names = [name for name, shape in self.shapes.items() if shape]
        name = self.random.choice(names[-3:] if self.random.random() < 0.7 else names)
        shape = self.shapes[name]
        return name, shape, self.random.randrange(len(shape))

    def slice(self, x: str, k: int, begin: Extent, end: Extent, text: str | None = None) -> str:
        shape = list(self.shapes[x])
        shape[k] = (end[0] - begin[0], end[1] - begin[1], end[2] - begin[2])
        first = f"[{_text(begin)}]"
        last = f"[{text or _text(end)}]"
        value = f"R.strided_slice({x}, [{k}], R.shape({first}), R.shape({last}))"
        return self.emit(value, shape)


def _slice(w: _Writer) -> None:
    x, shape, k = w.any()
    extent = shape[k]
    zero = (0, 0, 0)
    match w.random.randrange(6):
        case 0:
            w.slice(x, k, zero, extent, str((1 << 63) - 1))
        case 1 if extent[2] >= 1:
            w.slice(x, k, zero, (*extent[:2], extent[2] - 1), "-1")
        case 2:
            middle = (extent[0], 0, w.random.randint(0, extent[2]))
            parts = [w.slice(x, k, zero, middle), w.slice(x, k, middle, extent)]
            _join(w, w.random.sample(parts, 2), k)
        case _:
            low = w.random.randint(0, extent[2])
            high = w.random.randint(low, extent[2])
            w.slice(x, k, (0, 0, low), (*extent[:2], high))


def _join(w: _Writer, parts: Sequence[str], k: int) -> None:
    shape = list(w.shapes[parts[0]])
    total = [w.shapes[p][k] for p in parts]
    shape[k] = (sum(t[0] for t in total), sum(t[1] for t in total), sum(t[2] for t in total))
    w.emit(f"R.concat(({', '.join(parts)},), axis={k})", shape)


def _concat(w: _Writer) -> None:
    x, shape, k = w.any()
    fits = [
        name
        for name, other in w.shapes.items()
        if len(other) == len(shape) and other[:k] == shape[:k] and other[k + 1 :] == shape[k + 1 :]
    ]
    parts = [x, *w.random.choices(fits, k=w.random.randint(0, 2))]
    _join(w, parts, k)
    joined = list(w.shapes)[-1]
    start = w.shapes[parts[0]][k]
    if len(parts) > 1:
        extent = w.shapes[parts[1]][k]
        end = (start[0] + extent[0], start[1] + extent[1], start[2] + extent[2])
        w.slice(joined, k, start, end)


def _split(w: _Writer) -> None:
    x, shape, k = w.any()
    cuts = sorted(w.random.randint(0, 4) for _ in range(w.random.randint(1, 2)))
    if cuts[-1] > shape[k][2]:
        return
    bounds = [(0, 0, 0), *((0, 0, c) for c in cuts), shape[k]]
    parts = f"p{len(w.lines)}"
    w.lines.append(f"{parts} = R.split({x}, {cuts}, axis={k})")
    for i, (a, b) in enumerate(pairwise(bounds)):
        extent = (b[0] - a[0], b[1] - a[1], b[2] - a[2])
        w.emit(f"{parts}[{i}]", (*shape[:k], extent, *shape[k + 1 :]))


def _stack(w: _Writer) -> None:
    x, shape, k = w.any()
    same = [name for name, other in w.shapes.items() if other == shape]
    parts = [x, *w.random.choices(same, k=w.random.randint(0, 2))]
    made = w.emit(
        f"R.stack(({', '.join(parts)},), axis={k})", (*shape[:k], (0, 0, len(parts)), *shape[k:])
    )
    at = w.random.randrange(len(parts))
    if w.random.random() < 0.5:
        w.slice(made, k, (0, 0, at), (0, 0, at + 1))
    else:
        w.emit(f'R.take({made}, R.const({at}, "int64"), axis={k})', shape)


def _take(w: _Writer) -> None:
    x, shape, k = w.any()
    least = shape[k][2]
    if least:
        at = w.random.randint(-least, least - 1)
        w.emit(f'R.take({x}, R.const({at}, "int64"), axis={k})', (*shape[:k], *shape[k + 1 :]))


def _extents(w: _Writer) -> None:
    shape = w.emit("R.astype(R.shape_to_tensor(R.shape([n, m, 4])), 'float32')", [(0, 0, 3)])
    w.slice(shape, 0, (0, 0, 1), (0, 0, 2))
    whole = f"s{len(w.lines)}"
    w.lines.append(f"{whole} = R.shape_to_tensor(R.shape([n, m]))")
    value = f"R.strided_slice({whole}, [0], R.shape([1]), R.shape([2]))"
    w.emit(f"R.astype({value}, 'float32')", [(0, 0, 1)])


def _move(w: _Writer) -> None:
    x, shape, k = w.any()
    match w.random.randrange(5):
        case 0:
            axes = w.random.sample(range(len(shape)), len(shape))
            w.emit(f"R.permute_dims({x}, {axes})", [shape[a] for a in axes])
        case 1 if len(shape) < 4:
            w.emit(f"R.expand_dims({x}, [{k}])", (*shape[:k], (0, 0, 1), *shape[k:]))
        case 2 if len(shape) < 4:
            wide = ((0, 0, 2), *shape)
            w.emit(f"R.broadcast_to({x}, R.shape([{', '.join(map(_text, wide))}]))", wide)
        case 3 if len(shape) < 4:
            flat = w.emit(
                f"R.reshape({x}, R.shape([{', '.join(map(_text, shape))}, 1]))", (*shape, (0, 0, 1))
            )
            exp = w.emit(f"R.exp({flat})", w.shapes[flat])
            w.emit(f"R.reshape({exp}, R.shape([{', '.join(map(_text, shape))}]))", shape)
        case _:
            w.emit(f"R.negative({x})", shape)


STEPS = (_slice, _slice, _slice, _concat, _concat, _split, _stack, _take, _extents, _move)


def program(seed: int) -> rx.IRModule:
    """A module whose main has two parameters and gives all that nothing else reads."""
    w = _Writer(Random(seed))
    w.shapes |= {"x": ((1, 0, 4), (0, 0, 6)), "y": ((0, 1, 1), (0, 0, 6))}
    while len(w.shapes) < 12:
        w.random.choice(STEPS)(w)
    body = "\n        ".join(w.lines)
    used = body.replace("(", " ").replace(",", " ").replace(")", " ").split()
    ends = [v for v in list(w.shapes)[2:] if used.count(v) == 1]
    names = [f"out_{v}" for v in ends]
    outputs = "\n        ".join(f"out_{v} = R.multiply({v}, {v})" for v in ends)
    return rx.parse(f"""
@R.function
def main(x: R.Tensor(("n + 4", 6), "float32"), y: R.Tensor(("m + 1", 6), "float32"),
         of_n: R.Tensor(("n",), "float32"), of_m: R.Tensor(("m",), "float32")):
    with R.dataflow():
        {body}
        {outputs}
        R.output({", ".join(names)})
    return ({", ".join(names)},)
""")


def _run(module: rx.IRModule, n: int, m: int) -> tuple[Array, ...]:
    rng = np.random.default_rng(0)
    shapes = ((n + 4, 6), (m + 1, 6), (n,), (m,))
    return cast(
        "tuple[Array, ...]",
        evaluate(module, "main", *(rng.standard_normal(s).astype("float32") for s in shapes)),
    )


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.fuzz)])
def test_what_rules_make_of_slices_computes_the_same(count: int) -> None:
    fired = set[str]()
    for seed in range(count):
        module = program(seed)
        explained = rx.explain(module, without=[f for f in FAMILIES if f not in TRIED])
        fired.update(explained.rules)
        for n, m in EXTENTS:
            before, after = _run(module, n, m), _run(explained.module, n, m)
            for a, b in zip(before, after, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=f"program({seed}) at {n}, {m}")
    assert not CHAINED - fired
