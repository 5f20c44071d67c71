"""No kernel reads or writes beside its arrays, whatever the extents, the data and the target."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("count", [2, pytest.param(12, marks=pytest.mark.fuzz)])
def test_no_operator_touches_memory_beside_its_arrays(count: int) -> None:
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.support.guarded", str(count)]

    run = subprocess.run(command, capture_output=True, text=True, check=False)

    *_, last = run.stdout.splitlines()
    assert run.returncode == 0, f"R.{last}: exit status {run.returncode}\n{run.stderr}"
