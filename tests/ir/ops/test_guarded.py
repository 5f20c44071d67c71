"""No kernel reads or writes beside its arrays, whatever the extents and the data."""

import subprocess
import sys


def test_no_operator_touches_memory_beside_its_arrays() -> None:
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.support.guarded"]

    run = subprocess.run(command, capture_output=True, text=True, check=False)

    *_, last = run.stdout.split()
    assert run.returncode == 0, f"R.{last}: exit status {run.returncode}\n{run.stderr}"
