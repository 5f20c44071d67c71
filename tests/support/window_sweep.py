"""All movements of windows, on kernels beside inaccessible pages; also a program.

    python -m tests.support.window_sweep                         a few cases of each family
    python -m tests.support.window_sweep FAMILY [PART/PARTS]     all moves, or a part of them

Along an axis a window has a size, a stride, a padding before and after, and a dilation: 2 100
combinations.  An operator over one axis runs all of them; over two axes, each axis runs all while
those of the other are drawn.  Results are compared with numpy.  Batches run in child processes,
which a fault may end; the cases of such a batch then run one by one.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, product
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

from relax_egraph import build
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.op import OPS
from relax_egraph.ir.ops.window import SPATIAL
from relax_egraph.lower.jit import linking
from tests.ir.ops.test_operators import STATIC, Known, arrays_of, assert_near, module_of
from tests.support.guarded import machine, scratch_functions
from tests.support.ops.case import Case, Draw
from tests.support.ops.conv import ERROR, shape
from tests.support.pairwise import pairs
from tests.support.widths import WIDTHS

BATCH = 50
"""The cases that one child process compiles and runs."""


@dataclass(frozen=True, slots=True)
class Move:
    """The movement of a window along one axis."""

    size: int
    stride: int
    before: int
    after: int
    dilation: int

    @property
    def reach(self) -> int:
        """The number of places that a window spans."""
        return (self.size - 1) * self.dilation + 1


MOVES = [Move(*values) for values in product(range(1, 8), range(1, 5), *[range(5)] * 2, (1, 2, 3))]

Kind = tuple[str, ...]
"""The distinction of cases of a family beside the moves: layout, groups, options."""

Drawn = tuple[Kind, tuple[Move, ...]]


@dataclass(frozen=True, slots=True)
class Family:
    """An operator over `rank` axes, the kinds of its cases, and the case of a kind and moves.

    `traits` selects from all combinations of layout, groups and the like with `TRAITS`.
    """

    name: str
    rank: int
    kinds: Sequence[Sequence[str]]
    case: Callable[[int, Kind, Sequence[Move], Draw], Case]
    traits: Callable[..., Iterable[tuple[Any, ...]]] = pairs

    def every(self) -> Iterator[Drawn]:
        """Each kind with each move along each axis; moves along the other axes are drawn."""
        random = Random(self.name)
        for move, kind, axis in product(MOVES, product(*self.kinds), range(self.rank)):
            moves = [random.choice(MOVES) for _ in range(self.rank)]
            moves[axis] = move
            yield kind, tuple(moves)

    def few(self) -> Iterator[Drawn]:
        """Kinds with moves that are drawn by their traits; each axis may or may not be strided."""
        random = Random(self.name)
        strided = [(False, True)] * self.rank
        for small, padding, *rest in self.traits((True, False), [*PADDINGS], *strided, *self.kinds):
            moves = [_move(small, padding, s, random) for s in rest[: self.rank]]
            yield tuple(rest[self.rank :]), tuple(moves)


PADDINGS: Mapping[str, Callable[[Move], bool]] = {
    "none": lambda m: m.before == m.after == 0,
    "of one side": lambda m: m.before != m.after,
    "larger than the window": lambda m: min(m.before, m.after) >= m.size,
}


@cache
def _moves(small: bool, padding: str, strided: bool) -> list[Move]:
    """Windows of one element or of more, with padding, with a stride above 1 or not."""
    some = [m for m in MOVES if (m.size == 1) == small and (m.stride > 1) == strided]
    return [m for m in some if PADDINGS[padding](m)]


def _move(small: bool, padding: str, strided: bool, random: Random) -> Move:
    return random.choice(_moves(small, padding, strided))


def _attrs(moves: Sequence[Move]) -> dict[str, Any]:
    return {
        "strides": tuple(m.stride for m in moves),
        "padding": (*(m.before for m in moves), *(m.after for m in moves)),
        "dilation": tuple(m.dilation for m in moves),
    }


def _extent(least: int, draw: Draw) -> int:
    """An extent of data: as small as possible, somewhat larger, or longer than a vector."""
    return least + draw.choice((0, 0, 1, 1, 2, 3, 5, 8, 19))


def _group_counts(groups: str, draw: Draw) -> tuple[int, int, int]:
    """The number of groups, and the channels and features of each."""
    if groups == "depthwise":
        return draw.choice((2, 3, 16, 17, 66)), 1, 1
    count = draw.choice((2, 3)) if groups == "several" else 1
    features = 1 if groups == "one feature" else draw.choice((2, 5, 17, 66))
    return count, draw.choice((1, 1, 2, 5, 17)), features


def _convolution(rank: int, kind: Kind, moves: Sequence[Move], draw: Draw) -> Case:
    groups, channels, features = _group_counts(kind[1], draw)
    letters = SPATIAL[rank]
    is_first = kind[0] == "first"
    attrs: dict[str, Any] = {
        **_attrs(moves),
        "groups": groups,
        "data_layout": f"NC{letters}" if is_first else f"N{letters}C",
        "kernel_layout": f"OI{letters}" if is_first else f"{letters}IO",
    }
    data = {"N": draw.choice((1, 1, 2, 3)), "C": groups * channels}
    kernel = {"O": groups * features, "I": channels}
    for letter, m in zip(letters, moves, strict=True):
        data[letter] = _extent(max(m.reach - m.before - m.after, 0), draw)
        kernel[letter] = m.size
    x = draw.array(shape(attrs["data_layout"], data))
    return Case((x, draw.array(shape(attrs["kernel_layout"], kernel))), attrs, ERROR)


def _transposed(rank: int, kind: Kind, moves: Sequence[Move], draw: Draw) -> Case:
    groups, channels, features = _group_counts(kind[1], draw)
    letters = SPATIAL[rank]
    is_first = kind[0] == "first"
    added = tuple(draw.integer(0, m.stride - 1) for m in moves)
    attrs: dict[str, Any] = {
        **_attrs(moves),
        "groups": groups,
        "output_padding": added,
        "data_layout": f"NC{letters}" if is_first else f"N{letters}C",
        "kernel_layout": f"IO{letters}" if is_first else f"{letters}OI",
    }
    data = {"N": draw.choice((1, 1, 2)), "C": groups * channels}
    kernel = {"O": features, "I": groups * channels}
    for letter, m in zip(letters, moves, strict=True):
        cropped = max(m.before + m.after - m.reach, 0)
        data[letter] = _extent(1 + -(-cropped // m.stride), draw)
        kernel[letter] = m.size
    x = draw.array(shape(attrs["data_layout"], data))
    return Case((x, draw.array(shape(attrs["kernel_layout"], kernel))), attrs, ERROR)


def _pool(rank: int, kind: Kind, moves: Sequence[Move], draw: Draw) -> Case:
    letters = SPATIAL[rank]
    layout = f"NC{letters}" if kind[0] == "first" else f"N{letters}C"
    attrs: dict[str, Any] = {
        **_attrs(moves),
        "pool_size": tuple(m.size for m in moves),
        "ceil_mode": kind[1] == "ceil",
        "count_include_pad": kind[-1] == "padding counts",
        "layout": layout,
    }
    extents = {"N": draw.choice((1, 2)), "C": draw.choice((1, 2, 5, 17))}
    for letter, m in zip(letters, moves, strict=True):
        extents[letter] = _extent(max(m.reach - m.before - m.after, 0), draw)
    return Case((draw.array(shape(layout, extents)),), attrs, ERROR)


def _slice(rank: int, kind: Kind, moves: Sequence[Move], draw: Draw) -> Case:
    """Slices from `before` or to `after` beyond the ends, by the stride, in either direction."""
    sign = 1 if kind[0] == "forwards" else -1
    extents = tuple(_extent(m.size - 1, draw) for m in moves)
    ends = [(m.before - m.dilation, n + 2 - m.after) for m, n in zip(moves, extents, strict=True)]
    begin, end = zip(*(e[::sign] for e in ends), strict=True)
    attrs: dict[str, Any] = {
        "axes": tuple(range(1, rank + 1)),
        "strides": tuple(sign * m.stride for m in moves),
    }
    x = draw.array((draw.choice((1, 2)), *extents, draw.choice((1, 3))))
    return Case((x, begin, end), attrs)


def _pad(rank: int, kind: Kind, moves: Sequence[Move], draw: Draw) -> Case:
    least = {"constant": 0, "reflect": 5, "replicate": 1, "circular": 4}[kind[0]]
    extents = (least + m.size - 1 for m in moves)
    x = draw.array((draw.choice((1, 2)), draw.choice((1, 3)), *extents))
    width = (0, 0, 0, 0, *(side for m in moves for side in (m.before, m.after)))
    return Case((x,), {"pad_width": width, "pad_mode": kind[0]})


LAYOUTS, GROUPS = ("first", "last"), ("one", "one feature", "several", "depthwise")
ENDS, COUNTS = ("floor", "ceil"), ("padding counts", "data counts")
MODES = ("constant", "reflect", "replicate", "circular")

FAMILIES: Mapping[str, Family] = {
    f"{name}{rank}d": Family(f"nn.{name}{rank}d", rank, kinds, case, traits)
    for rank in (1, 2)
    for name, kinds, case, traits in (
        ("conv", (LAYOUTS, GROUPS), _convolution, pairs if rank == 1 else product),
        ("max_pool", (LAYOUTS, ENDS), _pool, pairs),
        ("avg_pool", (LAYOUTS, ENDS, COUNTS), _pool, pairs),
    )
} | {
    f"{label}{rank}d": Family(name.format(rank=rank), rank, kinds, case, traits)
    for rank in (1, 2)
    for label, name, kinds, case, traits in (
        ("transposed", "nn.conv{rank}d_transpose", (LAYOUTS, GROUPS), _transposed, product),
        ("slice", "strided_slice", (("forwards", "backwards"),), _slice, pairs),
        ("pad", "nn.pad", (MODES,), _pad, pairs),
    )
}


Instance = tuple[Case, Known, str]
"""A case, what is known of its extents, and the target that it is compiled for."""


def cases_of(name: str, draws: Iterable[Drawn]) -> Iterator[Instance]:
    """The cases of a family; every eighth has symbols for the batch and the extents of data."""
    family = FAMILIES[name]
    for kind, moves in draws:
        random = Random(f"{name} {kind} {moves}")
        one = family.case(family.rank, kind, moves, Draw(random))
        extents = {*one.operands[0].shape} - {1}
        is_known = random.random() < 7 / 8
        known = STATIC if is_known else Known({d: f"n{d}" for d in extents})
        yield one, known, random.choice(WIDTHS)


def check(name: str, cases: Sequence[Instance]) -> None:
    """Run `cases` of an operator, and compare with numpy."""
    for target in WIDTHS:
        own = [(one, known) for one, known, for_target in cases if for_target == target]
        wanted = [apply_op(OPS[name], one.operands, one.attrs) for one, _ in own]
        vm = machine(build(module_of(name, own), target=target))
        for k, ((one, _), expected) in enumerate(zip(own, wanted, strict=True)):
            assert_near(vm[f"f{k}"](*arrays_of(one.operands)), expected, one)


def ends_well(name: str, cases: Sequence[Instance]) -> bool:
    """Whether a child process completes the checks of `cases`; prints the reason otherwise."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    try:
        check(name, cases)
    except BaseException as error:
        print(f"{type(error).__name__}: {str(error)[:800]}", flush=True)
        os._exit(1)
    os._exit(0)


def failing(name: str, draws: Iterable[Drawn]) -> Iterator[str]:
    """The failures of the cases of a family, a text for each."""
    operator, cases = FAMILIES[name].name, cases_of(name, draws)
    while batch := list(islice(cases, BATCH)):
        if ends_well(operator, batch):
            continue
        for case in batch:
            if not ends_well(operator, [case]):
                one, known, target = case
                shapes = [getattr(a, "shape", a) for a in one.operands]
                symbols = f"symbols {known.values}, for {target}"
                yield f"R.{operator} of {shapes}, {symbols}: {dict(one.attrs)}"


def main(name: str = "", part: str = "1/1") -> int:
    """Sweep a part of a family, or a few cases of each; the exit status is 1 if a case fails."""
    np.seterr(all="ignore")
    number, count = map(int, part.split("/"))
    draws = {n: [*f.few()] for n, f in FAMILIES.items() if not name}
    if name:
        draws[name] = [*FAMILIES[name].every()]
    failures = 0
    with patch.object(linking, "workspace_functions", scratch_functions):
        for family, drawn in draws.items():
            own = drawn[number - 1 :: count]
            for text in failing(family, own):
                failures += 1
                print(text, flush=True)
            print(f"{family}: {len(own)} of {len(drawn)} cases, {failures} failures", flush=True)
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
