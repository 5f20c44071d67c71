"""``pytest --replay``: proves every optimization of a test, and re-executes the proofs.

`run`, through which all optimizations go, is wrapped: when it returns, the regions of the module
are proved equal to their originals, and each step of each proof is computed in numpy.  A failure
fails the test.  Replayed regions are recorded by name in a folder that the processes of a run
share, so that equal regions with equal rules and options are replayed once.
"""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, astuple, dataclass
from functools import wraps
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

import pytest

from relax_egraph.ir.expr import Constant
from relax_egraph.ir.tolerance import tolerance_of
from relax_egraph.lower.jit.object_cache import digest
from relax_egraph.optimize.explanation import Explanation, RegionReport
from relax_egraph.optimize.run import run
from relax_egraph.proof.prove import prove
from relax_egraph.proof.replay import replay
from relax_egraph.proof.trace import Proof

NOT_REPLAYED = {
    "test_engine_unsound.py": "rules are unsound on purpose",
    "test_assuming.py::test_shapes_that_only_an_assumption_makes_equal_are_no_conflict": (
        "its rule cuts shapes and no values"
    ),
    "test_rule_loading.py::test_a_file_is_loaded_once_and_used_often": (
        "its rule, exp(log(x)) = x, is wrong below 0"
    ),
    "test_replay_programs.py::test_a_fact_that_is_false_is_seen_where_it_is_read": (
        "its rule is false on purpose"
    ),
    "test_calls_in_rules.py": "functions of users have no meaning in a replay",
    "test_own_operators.py::test_a_rule_chooses_a_packed_call_by_its_stated_work": (
        "functions of users have no meaning in a replay"
    ),
    "test_hostile_rules.py": "rules are hostile on purpose",
    "test_bisect.py": "rules are wrong on purpose",
    "test_why_not.py": "rules are wrong on purpose",
    "test_hostile.py": "tensors are larger than memory on purpose",
}
"""Tests and test files whose optimizations are not replayed, with the reason."""

Explain = Callable[..., Explanation]


@dataclass(frozen=True, slots=True)
class Done:
    """The replay of one region, in the first test with it."""

    test: str
    steps: int
    values: int
    error: float
    uncomputed: int
    seconds_of_proof: float
    seconds_of_replay: float


class Replaying:
    """The plugin of ``--replay``; `folder` is shared by the processes of the run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.test = ""

    @staticmethod
    def of(config: pytest.Config) -> "Replaying":
        """The plugin for a run; its first process empties the folder."""
        assert config.cache is not None
        folder = Path(config.cache.mkdir("replayed"))
        if not hasattr(config, "workerinput"):
            for file in folder.iterdir():
                file.unlink()
        return Replaying(folder)

    def pytest_collection_finish(self) -> None:
        """Replace the plain function by the wrapped one everywhere."""
        wrapped = self.wrapped(run)
        for module in list(sys.modules.values()):
            if module.__name__.partition(".")[0] in ("relax_egraph", "tests", "bench"):
                _replace(module, run, wrapped)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Record the test that makes the optimizations."""
        names = (item.path.name, f"{item.path.name}::{item.name.partition('[')[0]}")
        self.test = "" if NOT_REPLAYED.keys() & names else item.nodeid
        try:
            return (yield)
        finally:
            self.test = ""

    def wrapped(self, plain: Explain) -> Explain:
        """`plain` with the replay of each result."""

        @wraps(plain)
        def replayed(*args: Any, **options: Any) -> Explanation:
            explanation = plain(*args, **options)
            if test := self.test:
                self.test = ""  # nested optimizations do not belong to the test
                try:
                    for region in explanation.regions:
                        self.replay(region, tolerance_in(explanation), test)
                    self.count(test)
                finally:
                    self.test = test
            return explanation

        return replayed

    def replay(self, region: RegionReport, tolerance: float, test: str) -> None:
        """Prove and replay `region`, unless that was done before."""
        file = self.folder / f"{_name(region)}.json"
        if file.exists():
            return
        begin = perf_counter()
        traces = proof_of(region, tolerance).traces
        proved = perf_counter()
        every = [replay(trace) for trace in traces]
        done = Done(
            test,
            sum(r.steps for r in every),
            sum(r.values for r in every),
            max((r.error for r in every), default=0.0),
            sum(len(r.uncomputed) for r in every),
            proved - begin,
            perf_counter() - proved,
        )
        file.write_text(json.dumps(asdict(done)), "utf-8")

    def count(self, test: str) -> None:
        """Count an optimization of `test`."""
        with (self.folder / "optimizations").open("a", encoding="utf-8") as file:
            file.write(f"{test}\n")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a summary of the replays."""
        done = [json.loads(f.read_text("utf-8")) for f in self.folder.glob("*.json")]
        counted = self.folder / "optimizations"
        times = counted.read_text("utf-8").count("\n") if counted.exists() else 0
        steps, values, left = (sum(d[k] for d in done) for k in ("steps", "values", "uncomputed"))
        seconds = sum(d["seconds_of_proof"] + d["seconds_of_replay"] for d in done)
        write = terminalreporter.write_line
        write(
            f"replayed: {times} optimizations, {len(done)} regions that differ, {steps} steps, "
            f"{values} values, {seconds:.0f} s; {left} steps had no value to compare"
        )
        for name, why in NOT_REPLAYED.items():
            write(f"not replayed: {name}: {why}")


def proof_of(region: RegionReport, tolerance: float = 0.0) -> Proof:
    """The proof of a region."""
    return prove(region, [f"output {k}" for k in range(len(region.source.roots))], tolerance)


def tolerance_in(explanation: Explanation) -> float:
    """The largest tolerance of a function."""
    functions = explanation.module.relax_functions()
    return max((tolerance_of(name, f.attrs) for name, f in functions), default=0.0)


def _replace(module: ModuleType, old: object, new: object) -> None:
    for name, value in list(vars(module).items()):
        if value is old:
            setattr(module, name, new)


def _name(region: RegionReport) -> str:
    """A name for all inputs of the replay of `region`."""
    source, runs = region.source, region.runs
    constants = [leaf.data for leaf in source.leaves if isinstance(leaf, Constant)]
    return digest(
        *(repr(part) for part in (source.classes, source.roots, region.extraction.program)),
        *(repr((astuple(r.book()), r.schedule(), r.assumed, r.report.bans)) for r in runs),
        *(f"{data.dtype} {data.shape}" for data in constants),
        *(data.tobytes() for data in constants),
        *(str(binding.var.struct_info) for binding in source.opaque),
    )
