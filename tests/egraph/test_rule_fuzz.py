"""Damaged rule files are refused by an error of ours, or run: no death, no hang, nothing else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHARE, ALL, CHUNK = 48, 2_448, 400


def outcomes(first: int, last: int) -> dict[str, int]:
    """How often each thing became of these damages; a death says of which one it was."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.rule_fuzz", str(first), str(last)],
        cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_damaged_rules() -> None:
    counts = outcomes(0, SHARE)

    assert sum(counts.values()) == SHARE
    assert {"alike: RuleError", "alike: a program"} <= counts.keys()


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(SHARE, ALL, CHUNK))
def test_more_damaged_rules(first: int) -> None:
    last = min(first + CHUNK, ALL)

    assert sum(outcomes(first, last).values()) == last - first
