"""Calls on a Ray cluster, and checks of rules through it."""

import os
import signal
from collections.abc import Generator
from functools import partial
from pathlib import Path

import pytest

from relax_egraph.base.journal import Journal
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.errors import RelaxEgraphError
from relax_egraph.ray import pool as ray_pool
from relax_egraph.ray.cluster import LOCAL, connected
from relax_egraph.ray.pool import RayPool
from relax_egraph.verify.check import Check, check_seeds
from relax_egraph.verify.verdict import Verdict
from relax_egraph.workers.pool import Pool
from relax_egraph.workers.process import Death, Limits
from tests.support.sound_rules import NEGATIVES

pytest.importorskip("ray", reason="needs the extra [ray]")

MINUTE = Limits(60)

SEEDS = (0, 1)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Generator[None]:
    with connected(LOCAL, num_cpus=2):
        yield


def kills_ray_once(mark: str) -> str:
    """Kill the process of Ray that this worker belongs to, in the first call."""
    if not Path(mark).exists():
        Path(mark).write_text("killed")
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
    return "done"


def test_calls_return_raise_and_die_as_in_a_pool_of_this_machine() -> None:
    with RayPool(partial(abs, 1)) as pool:
        answers = pool.map(lambda n: pool.run(partial(abs, -n), MINUTE), range(5))
        assert {*answers} == {*range(5)}
        with pytest.raises(ValueError, match="invalid literal"):
            pool.run(partial(int, "x"), MINUTE)
        assert pool.run(partial(os._exit, 3), MINUTE) == Death("crash", "with code 3", MINUTE)


def test_a_call_whose_process_of_ray_is_killed_runs_again(tmp_path: Path) -> None:
    with RayPool() as pool:
        assert pool.run(partial(kills_ray_once, str(tmp_path / "mark")), MINUTE) == "done"
    assert (tmp_path / "mark").exists()


def test_machines_with_other_sources_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_pool, "digest_of_code", lambda: "another version")

    with RayPool() as pool, pytest.raises(RelaxEgraphError, match="install the same version"):
        pool.run(partial(abs, 1), MINUTE)


def shown(check: Check) -> dict[int, list[str]]:
    return {seed: list(map(str, some)) for seed, some in check_seeds(check, SEEDS).items()}


def test_a_check_has_the_same_verdicts_here_in_processes_and_on_a_cluster() -> None:
    wrong = '(rewrite (R.add x x) x :name "doubled-is-single")'
    book = RuleBook.default([NEGATIVES + wrong], families=())
    here = shown(Check(book, trials=2))

    assert shown(Check(book, trials=2, executor=partial(Pool, 1))) == here
    assert shown(Check(book, trials=2, executor=RayPool)) == here


def test_a_check_that_was_stopped_on_a_cluster_goes_on_here(tmp_path: Path) -> None:
    book, file = RuleBook.default([NEGATIVES], families=()), tmp_path / "check.jsonl"

    def stop(_: Verdict) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check_seeds(Check(book, trials=2, executor=RayPool, journal=Journal(file)), SEEDS, stop)
    assert file.read_bytes().count(b"\n") > 0

    assert shown(Check(book, trials=2, journal=Journal(file))) == shown(Check(book, trials=2))
