"""Commands on a Ray cluster have the results that they have here, and go on here."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from bench.case_pool import outcomes
from relax_egraph.base.journal import Journal
from relax_egraph.ray.cluster import LOCAL, connected
from relax_egraph.ray.pool import RayPool
from tests.bench.test_case_pool import FOUND, SUITE
from tests.support.command import invoke

pytest.importorskip("ray", reason="needs the extra [ray]")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Generator[None]:
    with connected(LOCAL, num_cpus=2):
        yield


def on_both(journal: Path, *words: object) -> tuple[object, object]:
    """What a command prints as JSON: run on the cluster, and going on from its journal here."""
    there = invoke(*words, "--json", "--journal", journal, "--ray", LOCAL)
    answers = journal.read_bytes()
    here = invoke(*words, "--json", "--journal", journal)

    assert there.exit_code == here.exit_code == 0, there.output + here.output
    assert journal.read_bytes() == answers
    return json.loads(there.stdout), json.loads(here.stdout)


def test_rules_are_discovered_on_a_cluster(tmp_path: Path) -> None:
    words = ("rules", "discover", "--ops", "R.negative,R.abs", "--size", 2, "--no-book")

    there, here = on_both(tmp_path / "run.jsonl", *words)

    assert there == here


def test_a_check_proves_on_the_cluster(tmp_path: Path) -> None:
    pytest.importorskip("z3", reason="proofs need z3-solver")
    file = tmp_path / "mine.egg"
    file.write_text(
        '; x + y = y + x\n; float: exact\n(rewrite (R.add x y) (R.add y x) :name "a")\n'
    )

    there, here = on_both(tmp_path / "checks.jsonl", "rules", "check", file, "--prove")

    assert there == here


def test_cases_of_a_suite_run_on_a_cluster(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"

    assert outcomes(SUITE, ("a", "dies", "waits", "b"), RayPool, Journal(file)) == FOUND
    assert outcomes(SUITE, ("a", "b"), journal=Journal(file)) == ["A", "B"]


PROGRAM = """\
@R.function
def main(x: R.Tensor((8, 64), "float32"), y: R.Tensor((8, 64), "float32")):
    with R.dataflow():
        a = R.exp(R.negative(R.negative(x)))
        b = R.add(R.multiply(a, y), CALL)
        R.output(b)
    return b
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("programs")
    files = [folder / "one.py", folder / "two.py"]
    for file, call in zip(files, ("x", "y"), strict=True):
        file.write_text(PROGRAM.replace("CALL", call))
    return files


@pytest.mark.parametrize("count", [1, 2])
def test_costs_are_bisected_on_a_cluster(tmp_path: Path, programs: list[Path], count: int) -> None:
    words = ("bisect", *programs[:count], "--metric", "cost", "--without", "idioms")

    there, here = on_both(tmp_path / "costs.jsonl", *words)

    assert there == here


def test_proofs_are_replayed_on_a_cluster(tmp_path: Path, programs: list[Path]) -> None:
    there, here = on_both(tmp_path / "replays.jsonl", "replay", *programs, "--seeds", 2)

    assert there == here
