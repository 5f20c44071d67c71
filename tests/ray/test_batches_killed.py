"""A table through a model, while actors, workers and the driver are killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest

from tests.ray.squares import check, save_model

pytest.importorskip("ray.data", reason="needs the extra [ray]")
pa = pytest.importorskip("pyarrow", reason="needs the extra [ray]")
parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra [ray]")

COUNT, BLOCKS = 100_000, 40
"""Those of `killed_driver`, which imports Ray."""

ROOT = Path(__file__).parents[2]
MARK = "RELAX_EGRAPH_TEST_RUN"


class Run:
    """A driver and the processes of its cluster, which have its mark in their environment."""

    def __init__(self, *args: str) -> None:
        self._mark = uuid4().hex
        self.driver = subprocess.Popen(
            [sys.executable, "-m", "tests.ray.killed_driver", *args],
            cwd=ROOT,
            env={**os.environ, MARK: self._mark},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def processes(self, title: str = "") -> list[int]:
        """Those whose command line has `title`."""
        return [pid for pid, text in self._all() if title in text]

    def kill(self, title: str) -> bool:
        """End one of the processes; whether there was one."""
        for pid in self.processes(title):
            os.kill(pid, signal.SIGKILL)
            return True
        return False

    def close(self) -> None:
        """End the driver and all of its cluster."""
        while found := self.processes():
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.driver.wait()

    def _all(self) -> Iterator[tuple[int, str]]:
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if f"{MARK}={self._mark}".encode() in (folder / "environ").read_bytes():
                    yield int(folder.name), (folder / "cmdline").read_text(errors="replace")


def _until(condition: Callable[[], object], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="it finds processes in /proc")
def test_nothing_is_lost_or_twice_when_processes_are_killed(tmp_path: Path) -> None:
    model, out = tmp_path / "squares.rxe", tmp_path / "out"
    save_model(model)
    args = [str(model), str(out), str(tmp_path / "kept")]

    def written() -> int:
        return len([*out.glob("*.parquet")])

    first = Run(*args)
    try:
        _until(lambda: written() >= 2)
        assert first.kill("ray::MapWorker(")
        _until(lambda: written() >= 5)
        _until(lambda: first.kill("ray::Write") or first.kill("ray::IDLE"))
        _until(lambda: written() >= 8)
        assert first.driver.poll() is None
    finally:
        first.close()
    assert written() < BLOCKS
    second = Run(*args)
    try:
        assert second.driver.wait(timeout=240) == 0
    finally:
        second.close()

    found = pa.concat_tables([parquet.read_table(f) for f in out.glob("*.parquet")]).sort_by("id")
    assert found["id"].to_pylist() == list(range(COUNT))
    squares = np.stack(found["square"].to_pylist()).astype(np.float32)
    check(found["id"].to_numpy(), squares, found["sum"].to_numpy())
