"""Collects the module tests: every ``tests/optimize/*.relax`` is a list of cases.

A case is a comment that says what is true, perhaps ``# FIRES:`` with rules that must match, a
program, a line ``# =====``, and the whole program that `optimize` makes of it; cases are separated
by ``# -----``.  ``pytest --bless`` rewrites the second half.  Both halves are also run by the
reference evaluator on random inputs, for two values of each symbol, so that a blessed mistake is
still caught.
"""

import difflib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import relax_egraph as rx
from relax_egraph.ir import dims
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Function
from relax_egraph.ir.struct_info import TensorStructInfo

CASE, RESULT = "\n# -----\n", "\n# =====\n"


class NotAsExpected(AssertionError):
    """The optimized program is not the one in the file, or does not compute the same."""


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".relax":
        return RelaxFile.from_parent(parent, path=file_path)
    return None


class RelaxFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        for index, case in enumerate(self.path.read_text("utf-8").split(CASE)):
            title = case.splitlines()[0].removeprefix("# ")
            item: RelaxCase = RelaxCase.from_parent(self, name=title)
            item.index = index
            yield item


class RelaxCase(pytest.Item):
    index: int

    def runtest(self) -> None:
        cases = self.path.read_text("utf-8").rstrip("\n").split(CASE)
        before, _, expected = cases[self.index].partition(RESULT)
        module = rx.parse(before, filename=self.path.name)
        report = rx.explain(module)
        actual = report.module.script().rstrip("\n")

        asked = re.search(r"(?m)^# FIRES: (.+)$", before)
        if silent := set(asked[1].split() if asked else ()) - set(report.rules):
            raise NotAsExpected(f"{', '.join(sorted(silent))} matched nothing")
        for extent in (2, 5):
            assert_same_results(module, report.module, extent)
        if actual == expected:
            return
        if self.config.getoption("--bless"):
            cases[self.index] = f"{before}{RESULT}{actual}"
            self.path.write_text(CASE.join(cases) + "\n", "utf-8")
            return
        lines = difflib.unified_diff(
            expected.splitlines(), actual.splitlines(), "expected", "actual", lineterm=""
        )
        command = f"pytest --bless {self.path.name}"
        raise NotAsExpected("\n".join([*lines, "", f"if this is right: {command}"]))

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None
    ) -> str:
        if isinstance(excinfo.value, NotAsExpected):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


def assert_same_results(before: rx.IRModule, after: rx.IRModule, extent: int) -> None:
    function = before["main"]
    assert isinstance(function, Function)
    rng = np.random.default_rng(0)
    inputs = [random_input(rng, p.struct_info, extent) for p in function.params]
    expected, actual = (evaluate(m, "main", *inputs) for m in (before, after))
    for want, have in zip(leaves(expected), leaves(actual), strict=True):
        np.testing.assert_allclose(have, want, rtol=2e-5, atol=1e-5)


def random_input(rng: np.random.Generator, info: object, extent: int) -> npt.NDArray[Any]:
    """An array for a parameter; every symbol is `extent`, each further one by 1 more."""
    assert isinstance(info, TensorStructInfo)
    assert info.dims is not None
    names = sorted(frozenset[str]().union(*map(dims.symbols, info.dims)))
    values = {name: extent + sum(map(ord, name)) % 3 for name in names}
    shape = tuple(dims.evaluate(d, values) for d in info.dims)
    return rng.standard_normal(shape).astype(info.dtype)


def leaves(value: Any) -> list[Any]:
    return [v for field in value for v in leaves(field)] if isinstance(value, tuple) else [value]
