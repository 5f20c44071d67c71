"""What the tables say of results: ratios beside those that are wanted, and what falls short."""

from io import StringIO

from rich.console import Console
from rich.table import Table

from bench.compiling import Compilation
from bench.result import ONE_THREAD, OURS, UNOPTIMIZED, Result
from bench.tables import (
    compilations_table,
    one_thread_table,
    optimizer_table,
    remarks,
    two_threads_table,
)

SINGLE = Result(
    name="product",
    threads=1,
    limit="arithmetic",
    amount=1e9,
    wanted={"peer": 1.5, "limit": 0.5, "unoptimized": 1.2},
    seconds={OURS: 0.01, UNOPTIMIZED: 0.015, "first": 0.02, "second": 0.012},
    rates={"multiply-adds": 2e11},
    errors={OURS: 1e-7},
    left_out={"third": "no operator add"},
    contended={},
)
DOUBLE = Result(
    name="product",
    threads=2,
    limit="arithmetic",
    amount=1e9,
    wanted={"two threads": 1.8, "contended": 1.0},
    seconds={OURS: 0.005, ONE_THREAD: 0.01, "first": 0.01},
    rates={},
    errors={OURS: 1e-7},
    left_out={},
    contended={OURS: 0.0125, ONE_THREAD: 0.01},
)


def rows_of(table: Table) -> list[list[str]]:
    """The words of each row, as they are printed."""
    out = StringIO()
    Console(file=out, width=200).print(table)
    lines = out.getvalue().splitlines()
    return [[c.strip() for c in line[1:-1].split("│")] for line in lines if "│" in line]


def test_ratios_are_in_units_of_what_was_measured() -> None:
    assert SINGLE.best_peer == "second"
    assert {k: round(r, 6) for k, r in SINGLE.ratios.items()} == {
        "peer": 1.2,
        "limit": 0.5,
        "unoptimized": 1.5,
    }
    assert {k: round(r, 6) for k, r in DOUBLE.ratios.items()} == {
        "peer on two threads": 2.0,
        "two threads": 2.0,
        "contended": 0.8,
    }


def test_without_a_peer_there_is_no_ratio_to_one() -> None:
    alone = Result("x", 1, "copy", 1.0, {"peer": 2.0}, {OURS: 1.0}, {}, {}, {}, {})

    assert (alone.best_peer, alone.ratios, alone.short) == (None, {}, {})


def test_a_row_has_times_ratios_and_the_limit() -> None:
    (row,) = rows_of(one_thread_table([SINGLE]))

    times = ["10000.0", "20000.0", "12000.0"]
    ratios = ["1.20 ≥ 1.50", "0.50 ≥ 0.50"]
    assert row == ["product", *times, *ratios, "multiply-adds 200 GFLOP/s", "1e-07"]


def test_two_threads_are_beside_one_and_under_contention() -> None:
    (row,) = rows_of(two_threads_table([DOUBLE]))

    free = ["10000.0", "5000.0", "2.00 ≥ 1.80"]
    contended = ["10000.0", "12500.0", "0.80 ≥ 1.00"]
    assert row == ["product", *free, *contended, "10000.0", "2.00"]


def test_the_optimizer_has_a_table_of_its_own() -> None:
    assert rows_of(optimizer_table([SINGLE])) == [["product", "15000.0", "10000.0", "1.50 ≥ 1.20"]]


def test_compile_times_are_beside_those_that_are_wanted() -> None:
    compiled = [Compilation("kernel", 0.02, 0.01, 0.03, 0.01), Compilation("model", 1.0, 0.5, 0.6)]

    assert rows_of(compilations_table(compiled)) == [
        ["kernel", "20.00", "10.00", "30.00", "≤ 10.00"],
        ["model", "1000.00", "500.00", "600.00", ""],
    ]


def test_what_falls_short_is_said() -> None:
    assert remarks([SINGLE, DOUBLE]) == [
        "product: third is left out: no operator add",
        "product: best peer / ours: 1.20, wanted 1.50",
        "product, 2 threads: one thread / two, with a core taken away: 0.80, wanted 1.00",
    ]
