"""Windows of every size, stride, padding and dilation see their data, zeros, and nothing else."""

import subprocess
import sys

import pytest

from tests.support.window_sweep import FAMILIES


def swept(*family: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.support.window_sweep", *family]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_few_windows_of_each_family() -> None:
    run = swept()

    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.fuzz
@pytest.mark.parametrize("family", FAMILIES)
def test_all_windows(family: str) -> None:
    run = swept(family)

    assert run.returncode == 0, run.stdout + run.stderr
