"""Damaged models are refused, or are modules that run, or refuse to: no death, no hang, no more."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SHARE, ALL, CHUNK = 204, 2_004, 600


def outcomes(first: int, last: int) -> dict[str, int]:
    """How often each thing became of these damages; a death says of which one it was."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.onnx_fuzz", str(first), str(last)],
        cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_damaged_models() -> None:
    counts = outcomes(0, SHARE)

    assert sum(counts.values()) == SHARE
    kinds = ("deleted", "doubled", "exchanged", "flipped bits", "numbers", "texts")
    for kind in (*kinds, "attributes", "initializers"):
        assert counts[f"{kind}: refused"] > 0
        assert any(what.startswith(f"{kind}: a module") for what in counts)
    assert any(what.endswith("a module that runs") for what in counts)
    assert any(what.endswith("is refused when it runs") for what in counts)
    assert counts["cut: refused"] > 0


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(SHARE, ALL, CHUNK))
def test_more_damaged_models(first: int) -> None:
    last = min(first + CHUNK, ALL)

    assert sum(outcomes(first, last).values()) == last - first
