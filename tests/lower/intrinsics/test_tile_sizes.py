"""Machines are described by their targets, and sizes of tiles and blocks follow."""

from pathlib import Path

import pytest

from relax_egraph.lower.emit.machine import (
    Cache,
    Machine,
    _caches_here,  # pyright: ignore[reportPrivateUsage]  # of another folder
    machine_of,
    packing_machine,
    scheduled_machine,
    scheduling_for,
)
from relax_egraph.lower.emit.target import host
from relax_egraph.lower.intrinsics.tile_sizes import (
    MicroTile,
    block_rows,
    copied_from,
    micro_tile,
    panel_columns,
    piece,
    strip,
)
from relax_egraph.lower.jit.processors import processor

KIB = 1024


def test_a_machine_is_known_by_the_name_of_its_processor() -> None:
    assert machine_of(processor("x86_64:x86-64-v3")) == Machine(256, 16)
    server = machine_of(processor("x86_64:icelake-server"))
    assert (server.registers, server.first, server.second) == (
        *(32, Cache(48 * KIB, 12), Cache(1280 * KIB, 20)),
    )
    assert "avx512vnni" in server.dot_products
    assert machine_of(processor("aarch64")).registers == 32


def test_caches_are_read_from_the_system(tmp_path: Path) -> None:
    caches = [("Data", 1, "48K", 12), ("Instruction", 1, "32K", 8), ("Unified", 2, "2048K", 16)]
    for number, values in enumerate(caches):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        names = ("type", "level", "size", "ways_of_associativity")
        for name, value in zip(names, values, strict=True):
            (folder / name).write_text(f"{value}\n")

    assert _caches_here(tmp_path) == (Cache(48 * KIB, 12), Cache(2048 * KIB, 16))
    assert _caches_here(tmp_path / "missing") is None


@pytest.mark.parametrize(
    ("name", "tile", "strips", "steps", "rows", "copied"),
    [
        ("x86_64:x86-64-v4", MicroTile(6, 4), (64, 64, 64), 1024, 96, (192, 1 << 19)),
        ("x86_64:x86-64-v3", MicroTile(6, 2), (16, 32, 64), 1024, 48, (96, 1 << 13)),
        ("x86_64:haswell", MicroTile(6, 2), (16, 32, 64), 512, 48, (96, 1 << 13)),
        ("x86_64", MicroTile(6, 2), (16, 32, 64), 1024, 48, (48, 1 << 13)),
        ("aarch64", MicroTile(5, 4), (16, 32, 64), 1024, 45, (48, 1 << 13)),
    ],
)
def test_sizes_follow_from_the_machine(
    name: str,
    tile: MicroTile,
    strips: tuple[int, ...],
    steps: int,
    rows: int,
    copied: tuple[int, int],
) -> None:
    machine = machine_of(processor(name))

    assert micro_tile(machine) == tile
    assert tuple(strip(machine, bits) for bits in (32, 16, 8)) == strips
    assert (piece(machine), block_rows(machine)) == (steps, rows)
    assert copied_from(machine) == copied


@pytest.mark.parametrize(
    ("name", "bits", "columns", "sizes"),
    [
        ("x86_64:x86-64-v3", 32, 1024, (48, 128)),
        ("x86_64:x86-64-v3", 32, 1023, (48, 64)),
        ("x86_64:x86-64-v3", 64, 1024, (48, 64)),
        ("x86_64:znver3", 32, 4096, (48, 128)),
        ("x86_64:x86-64-v4", 32, 4096, (96, 64)),
        ("aarch64:neoverse-n1", 32, 4096, (45, 128)),
    ],
)
def test_wide_panels_leave_room_for_fewer_rows(
    name: str, bits: int, columns: int, sizes: tuple[int, int]
) -> None:
    machine = machine_of(processor(name))

    width = panel_columns(machine, columns, bits)

    assert (block_rows(machine, bits, width), width) == sizes


def test_sizes_of_doubles_follow_from_their_bits() -> None:
    v4, v3 = machine_of(processor("x86_64:x86-64-v4")), machine_of(processor("x86_64:x86-64-v3"))

    assert (micro_tile(v4, 64), strip(v4, 64), copied_from(v4, 64)) == (
        MicroTile(6, 4),
        64,
        (96, 1 << 18),
    )
    assert (micro_tile(v3, 64), strip(v3, 64), copied_from(v3, 64)) == (
        MicroTile(6, 2),
        8,
        (48, 1 << 12),
    )


def test_loops_are_scheduled_for_this_machine_unless_another_is_named() -> None:
    v3, v4 = processor("x86_64:x86-64-v3"), processor("x86_64:x86-64-v4")

    with scheduling_for(v4, packed_for=v3):
        assert (scheduled_machine(), packing_machine()) == (machine_of(v4), machine_of(v3))
    assert scheduled_machine() == packing_machine() == machine_of(host())
