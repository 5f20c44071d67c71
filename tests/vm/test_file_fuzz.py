"""Damaged executables are refused, or run: no death of the process, no hang, no other exception."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHARE, ALL, CHUNK = 750, 20_000, 1_000
WATCHED = 1_500


def outcomes(first: int, last: int, *more: str, **environment: str) -> dict[str, int]:
    """How often each thing became of these damages; a death says of which one it was."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.file_fuzz", str(first), str(last), *more],
        cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def refused(counts: dict[str, int], kind: str) -> int:
    return sum(n for what, n in counts.items() if what.startswith(f"{kind}: refused"))


def test_damaged_executables() -> None:
    counts = outcomes(0, SHARE)

    assert sum(counts.values()) == SHARE
    for kind in ("flipped bits", "cut", "header", "exchanged"):
        found = sum(n for what, n in counts.items() if what.startswith(f"{kind}: "))
        unharmed = counts.get(f"{kind}: not damaged", 0)
        assert refused(counts, kind) == found - unharmed > 0
    for kind in ("table", "words", "instructions", "objects"):
        reached = {what for what in counts if what.startswith(f"{kind}: ")}
        assert {f"{kind}: refused by the loader", f"{kind}: refused by the machine"} < reached
    assert not any("nowhere" in what for what in counts)


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(SHARE, ALL, CHUNK))
def test_more_damaged_executables(first: int) -> None:
    last = min(first + CHUNK, ALL)

    assert sum(outcomes(first, last).values()) == last - first


@pytest.mark.fuzz
def test_damaged_executables_while_memory_is_watched() -> None:
    """What is freed is overwritten, and what lies beside a block is looked at."""
    assert sum(outcomes(0, WATCHED, PYTHONMALLOC="debug").values()) == WATCHED


@pytest.mark.fuzz
def test_damaged_texts() -> None:
    assert sum(outcomes(0, 400, "texts").values()) == 400
