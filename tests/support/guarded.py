"""Runs kernels on arrays beside inaccessible pages, as a program, since a fault ends the process.

    python -m tests.support.guarded COUNT [operator ...]

COUNT instances of each operator, or of each that is named, are compiled for all targets in turn.
Each kernel gets copies of its arrays that end at an inaccessible page, then copies that begin at
the end of one.  The rest of their own pages must not change, and pages of inputs are read-only.
Its scratch memory ends at an inaccessible page, too.
"""

import ctypes
import mmap
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

from relax_egraph import VirtualMachine, build
from relax_egraph.errors import RunError
from relax_egraph.ir.dtypes import is_float
from relax_egraph.lower.jit import linking
from relax_egraph.lower.jit.compiled import KernelInfo
from relax_egraph.lower.jit.kernel_sets import head_of
from relax_egraph.lower.runtime.workspace_code import LINE, RELEASE, TAKE
from relax_egraph.vm.executable import Executable
from tests.ir.ops.test_operators import STATIC, Known, arrays_of, module_of, symbolic
from tests.support.ops import SAMPLERS, case
from tests.support.ops.case import Array, Case, Draw
from tests.support.widths import dealt

PAGE = mmap.PAGESIZE
NOTHING, READ, READ_WRITE = 0, 1, 3
"""The permitted uses of a page, for `mprotect`."""
CANARY = 0xA5

EXTENTS = (0, 1, 1, 3, 17, 67)
LARGEST = 100_000
"""The maximal elements of instances that are run."""

LARGEST_SCRATCH = 1 << 30

WILD_INTEGERS = (-1, 0, 1, 16, 17, 67, 1 << 31, 1 << 62, -(1 << 31), -(1 << 63), (1 << 63) - 1)
WILD_FLOATS = (np.nan, np.inf, -np.inf, 1e30, -1e30, 2.0**31, 2.0**63, -(2.0**63), -0.0)


@dataclass(frozen=True, slots=True)
class Place:
    """Whole pages between two inaccessible ones."""

    memory: mmap.mmap
    bytes: Array

    def put(self, array: Array, *, at_end: bool) -> Array:
        """A copy of `array` at one end; the rest are canaries."""
        self.bytes[:] = CANARY
        start = self.bytes.size - array.nbytes if at_end else 0
        copy = np.ndarray(array.shape, array.dtype, self.bytes.data, start)
        copy[...] = array
        return copy

    def protect(self, access: int) -> None:
        """Restrict the pages of the array to `access`."""
        protect(self.bytes.ctypes.data, self.bytes.size, access)

    def is_untouched(self, array: Array) -> bool:
        """Whether the canaries around `array` are unchanged."""
        start = array.ctypes.data - self.bytes.ctypes.data
        around = (self.bytes[:start], self.bytes[start + array.nbytes :])
        return all(bool((part == CANARY).all()) for part in around)


@cache
def place(number: int, pages: int) -> Place:
    """The place of `pages` for the array at position `number` of a call."""
    return new_place(pages)


def protect(address: int, size: int, access: int) -> None:
    """Restrict whole pages to `access`."""
    size_of = ctypes.c_size_t(size)
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), size_of, access) == 0


def new_place(pages: int) -> Place:
    """A place of `pages`."""
    memory = mmap.mmap(-1, (pages + 2) * PAGE)
    everything = np.frombuffer(memory, np.uint8)
    for page in (0, pages + 1):
        protect(everything.ctypes.data + page * PAGE, PAGE, NOTHING)
    return Place(memory, everything[PAGE:-PAGE])


_TAKE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)
_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_scratch: dict[int, tuple[Place, int]] = {}


@_TAKE
def _take(size: int) -> int | None:
    """An implementation of `TAKE` with canaries around the block."""
    rounded = -(-size // LINE) * LINE
    if rounded > LARGEST_SCRATCH:
        return None
    at = new_place(rounded // PAGE + 1)
    at.bytes[:] = CANARY
    start = at.bytes.ctypes.data + at.bytes.size - rounded
    _scratch[start] = at, size
    return start


@_RELEASE
def _release(start: int | None) -> None:
    """An implementation of `RELEASE`; ends the program if a canary has changed."""
    if start is None:
        return
    at, size = _scratch.pop(start)
    first = start - at.bytes.ctypes.data
    if not at.is_untouched(at.bytes[first : first + size]):
        print("a kernel wrote beside its scratch memory", file=sys.stderr, flush=True)
        os._exit(1)


def scratch_functions() -> Mapping[str, int]:
    """A replacement of `workspace_functions`."""
    functions = {TAKE: _take, RELEASE: _release}
    return {name: ctypes.cast(f, ctypes.c_void_p).value or 0 for name, f in functions.items()}


def guarded(name: str, kernel: Callable[..., None], info: KernelInfo) -> Callable[..., None]:
    """`kernel` on guarded copies of its arrays."""
    count = len(info.dtypes)
    inputs = count - info.num_outputs

    def run(*args: Any) -> None:
        arrays, numbers = args[:count], args[count:]
        for at_end in (True, False):
            places = [place(k, a.nbytes // PAGE + 1) for k, a in enumerate(arrays)]
            copies = [p.put(a, at_end=at_end) for p, a in zip(places, arrays, strict=True)]
            for at in places[:inputs]:
                at.protect(READ)
            try:
                kernel(*copies, *numbers)
            finally:
                for at in places[:inputs]:
                    at.protect(READ_WRITE)
            for k, (at, copy) in enumerate(zip(places, copies, strict=True)):
                assert at.is_untouched(copy), f"{name} wrote beside array {k}"
                if k < inputs:
                    assert copy.tobytes() == arrays[k].tobytes(), f"{name} wrote to input {k}"
                elif not at_end:
                    arrays[k][...] = copy

    return run


def machine(executable: Executable) -> VirtualMachine:
    """A machine whose kernels run guarded."""

    def link(executable: Executable, threads: int | None) -> Mapping[str, Callable[..., Any]]:
        assert linker is not None
        linked = dict(linker(executable, threads))
        for kernel_set in executable.kernels:
            for name, info in head_of(kernel_set).kernels.items():
                linked[name] = guarded(name, linked[name], info)
        return linked

    linker = executable.linker
    return VirtualMachine(replace(executable, linker=link))


def wild(array: Array, rng: np.random.Generator) -> Array:
    """`array` with most of its numbers replaced by extreme ones."""
    if array.dtype == bool:
        return array
    numbers = WILD_FLOATS
    if not is_float(array.dtype.name):
        limits = np.iinfo(array.dtype)
        numbers = [n for n in WILD_INTEGERS if limits.min <= n <= limits.max]
    with np.errstate(over="ignore"):
        worst = np.array(numbers).astype(array.dtype)
    chosen = worst[rng.integers(0, len(worst), array.shape)]
    return np.where(rng.random(array.shape) < 0.7, chosen, array)


def instances(name: str, count: int) -> Iterator[tuple[Case, Known]]:
    """Instances of an operator: every second one with symbols for extents."""
    random = Random(name)
    num_drawn = 0
    while num_drawn < count:
        drawn = SAMPLERS[name](Draw(random))
        if sum(a.size for a in arrays_of(drawn.operands)) <= LARGEST:
            yield drawn, symbolic(drawn, random) if num_drawn % 2 else STATIC
            num_drawn += 1


def _numbers(*shape: int, dtype: str = "float32") -> Array:
    return np.ones(shape, dtype)


AT = np.array([0, 1, -1, 5, 1 << 62, -(1 << 63)])

BY_HAND: Sequence[tuple[str, Case]] = (
    *(("astype", Case((_numbers(n, dtype="int64"),), {"dtype": "int16"})) for n in (1, 9, 289)),
    ("astype", Case((_numbers(17, dtype="float64"),), {"dtype": "float32"})),
    ("astype", Case((_numbers(65, dtype="int32"),), {"dtype": "int8"})),
    ("astype", Case((_numbers(65, dtype="int8"),), {"dtype": "int64"})),
    *(("take", Case((_numbers(0, 3), AT), {"axis": 0, "mode": m})) for m in ("fast", "wrap")),
    ("take", Case((_numbers(3, 0), AT), {"axis": 1, "mode": "nan"})),
    ("gather_elements", Case((_numbers(6, 0), AT.reshape(6, 1)), {"axis": 1})),
    ("gather_nd", Case((_numbers(0, 3), AT.reshape(6, 1)))),
    ("index_tensor", Case((_numbers(0, 0), (AT, AT)))),
    ("index_put", Case((_numbers(0, 3), (AT,), _numbers(6, 3)), {"accumulate": True})),
    *(
        ("nn.pad", Case((_numbers(0, 3),), {"pad_width": (2, 2, 1, 1), "pad_mode": m}))
        for m in ("constant", "reflect", "replicate", "circular")
    ),
    ("nn.max_pool1d", Case((_numbers(1, 2, 0),), {"pool_size": (1,), "padding": (1,)})),
    ("nn.conv1d", Case((_numbers(1, 2, 0), _numbers(1, 2, 1)), {"padding": (1,)})),
    ("nn.conv2d", Case((_numbers(2, 2, 0, 3), _numbers(2, 2, 3, 3)), {"padding": (2, 2)})),
    ("nn.conv1d_transpose", Case((_numbers(2, 2, 0), _numbers(2, 2, 3)), {"strides": (2,)})),
    ("image.resize2d", Case((_numbers(1, 1, 0, 3), (2, 2)))),
)
"""Operators on empty tensors, and with a remainder of one lane."""


def every_extent(one: Case) -> Known:
    """All extents but 1 as symbols."""
    return Known({d: f"n{d}" for a in arrays_of(one.operands) for d in a.shape if d != 1})


def check(name: str, cases: Sequence[tuple[Case, Known]], target: str) -> None:
    """Run `cases` of an operator, compiled for `target`, on their operands, and on wild ones."""
    vm = machine(build(module_of(name, cases), target=target))
    rng = np.random.default_rng(0)
    for k, (one, _) in enumerate(cases):
        arrays = [*arrays_of(one.operands)]
        vm[f"f{k}"](*arrays)
        with suppress(RunError):  # raised by packed functions that refuse the data
            vm[f"f{k}"](*(wild(a, rng) for a in arrays))


def main(count: str, *names: str) -> None:
    """Check each operator, after printing its name and a target: a crash follows the two."""
    np.seterr(all="ignore")
    scratch = patch.object(linking, "workspace_functions", scratch_functions)
    with scratch, patch.object(case, "EXTENTS", EXTENTS):
        for number, name in enumerate(names or SAMPLERS):
            by_hand = [c for of, c in BY_HAND if of == name]
            known = [(c, k) for c in by_hand for k in (STATIC, every_extent(c))]
            cases = [*instances(name, int(count)), *known]
            for target, own in dealt(cases, number):
                print(name, target, flush=True)
                check(name, own, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
