"""Descriptions of processors, from which the sizes of tiles and blocks of products follow.

The sizes follow from the number of registers and from the caches, as in T. M. Low, F. D. Igual,
T. M. Smith and E. S. Quintana-Ortí, "Analytical modeling is enough for high-performance BLIS",
ACM Transactions on Mathematical Software 43 (2016).
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from relax_egraph.lower.emit.target import Target, host

KIB = 1024


@dataclass(frozen=True, slots=True)
class Cache:
    """A data cache of one core: its bytes, and the places that a line may have."""

    size: int
    ways: int


FIRST, SECOND = Cache(32 * KIB, 8), Cache(512 * KIB, 8)
"""The caches of a processor that is not known otherwise."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A core: its vectors, its multipliers and its caches.

    There are `registers` of `vector_bits`; each of the `multipliers` starts a multiply-add in each
    cycle, whose result is there after `latency` cycles.  `dot_products` are the instructions for
    sums of products of short numbers.
    """

    vector_bits: int
    registers: int
    first: Cache = FIRST
    second: Cache = SECOND
    line: int = 64
    multipliers: int = 2
    latency: int = 4
    has_masks: bool = False
    multiplies_by_lane: bool = False
    dot_products: frozenset[str] = frozenset()

    def lanes(self, bits: int = 32) -> int:
        """The number of elements of `bits` in a vector."""
        return self.vector_bits // bits

    def line_of(self, bits: int = 32) -> int:
        """The number of elements of `bits` in a cache line."""
        return 8 * self.line // bits


_DOT_PRODUCTS = frozenset(
    {"avxvnni", "avx512vnni", "avx512bf16", "avxneconvert", "dotprod", "bf16", "i8mm"}
)

_CACHES: Mapping[str, tuple[Cache, Cache]] = {
    "znver4": (Cache(32 * KIB, 8), Cache(1024 * KIB, 8)),
    "znver5": (Cache(48 * KIB, 12), Cache(1024 * KIB, 16)),
    "haswell": (Cache(32 * KIB, 8), Cache(256 * KIB, 8)),
    "skylake": (Cache(32 * KIB, 8), Cache(256 * KIB, 4)),
    "x86-64-v4": (Cache(32 * KIB, 8), Cache(1024 * KIB, 16)),
    "skylake-avx512": (Cache(32 * KIB, 8), Cache(1024 * KIB, 16)),
    "cascadelake": (Cache(32 * KIB, 8), Cache(1024 * KIB, 16)),
    "icelake-server": (Cache(48 * KIB, 12), Cache(1280 * KIB, 20)),
    "sapphirerapids": (Cache(48 * KIB, 12), Cache(2048 * KIB, 16)),
    "neoverse-n1": (Cache(64 * KIB, 4), Cache(1024 * KIB, 8)),
    "neoverse-v1": (Cache(64 * KIB, 4), Cache(1024 * KIB, 8)),
    "neoverse-v2": (Cache(64 * KIB, 4), Cache(2048 * KIB, 8)),
}
"""The data caches of processors by LLVM's name, where they differ from those of `Machine`."""


def machine_of(target: Target) -> Machine:
    """The machine of `target`, whose caches are known by the name; `host()` has those of this one.

    A processor by name has the same sizes on all machines that compile for it, this one among them.
    """
    return _machine_here() if target is host() else _machine_by_name(target)


@cache
def _machine_by_name(target: Target) -> Machine:
    first, second = _CACHES.get(target.cpu, (FIRST, SECOND))
    return Machine(
        vector_bits=target.vector_bits,
        registers=target.vector_registers,
        first=first,
        second=second,
        has_masks=target.has_masks,
        multiplies_by_lane=target.multiplies_by_lane,
        dot_products=target.features & _DOT_PRODUCTS,
    )


@cache
def _machine_here() -> Machine:
    machine = _machine_by_name(host())
    first, second = _caches_here() or (machine.first, machine.second)
    return replace(machine, first=first, second=second)


_SYSTEM = Path("/sys/devices/system/cpu/cpu0/cache")


def _caches_here(folder: Path = _SYSTEM) -> tuple[Cache, Cache] | None:
    """The data caches of the first and second level, by Linux; ``None`` if it does not say."""
    caches: dict[str, Cache] = {}
    try:
        for place in folder.glob("index*"):
            texts = (place / name for name in ("type", "level", "size", "ways_of_associativity"))
            kind, level, size, ways = (text.read_text("ascii").strip() for text in texts)
            if kind != "Instruction":
                caches[level] = Cache(KIB * int(size.removesuffix("K")), max(1, int(ways)))
    except (OSError, ValueError):
        return None
    return (caches["1"], caches["2"]) if {"1", "2"} <= caches.keys() else None


# --- the machine that schedules are for -------------------------------------------------------

_MACHINES: ContextVar[tuple[Machine, Machine] | None] = ContextVar("machines", default=None)


def scheduled_machine() -> Machine:
    """The machine that loops are scheduled for: that of `scheduling_for`, or this one."""
    machines = _MACHINES.get()
    return machines[0] if machines else machine_of(host())


def packing_machine() -> Machine:
    """The machine whose layout prepared operands have; see `scheduling_for`."""
    machines = _MACHINES.get()
    return machines[1] if machines else machine_of(host())


@contextmanager
def scheduling_for(target: Target, packed_for: Target | None = None) -> Generator[None]:
    """Schedule loops for `target` inside.

    Kernels for several targets share the prepared operands, whose layout is then `packed_for` one.
    """
    token = _MACHINES.set((machine_of(target), machine_of(packed_for or target)))
    try:
        yield
    finally:
        _MACHINES.reset(token)
