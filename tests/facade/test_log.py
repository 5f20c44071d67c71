"""``RELAX_EGRAPH_LOG`` says what the package does, through `logging`."""

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import relax_egraph as rx
from relax_egraph.base.log import show
from relax_egraph.egraph.engine import Budget
from relax_egraph.lower.schedule_calls import schedule_calls

PROGRAM = '''
import relax_egraph as rx

module = rx.parse("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 8), "float32")) -> R.Tensor((4, 8), "float32"):
        with R.dataflow():
            y = R.exp(R.add(x, x))
            R.output(y)
        return y
""")
rx.build(rx.optimize(module), target="generic")
'''


def shown(level: str, folder: Path) -> list[str]:
    """What the program says on standard error, without times."""
    names = {"RELAX_EGRAPH_LOG": level, "RELAX_EGRAPH_CACHE": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **names},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    text = re.sub(r"for \S+: ", "for …: ", done.stderr)
    return re.sub(r"\d+\.\d ms", "… ms", text).splitlines()


def test_phases_are_shown_with_their_times(tmp_path: Path) -> None:
    assert shown("info", tmp_path) == [
        "relax_egraph.optimize.run: prepare: … ms",
        "relax_egraph.optimize.run: plan main: … ms",
        "relax_egraph.optimize.run: clean up: … ms",
        "relax_egraph.build: lower to loops: … ms",
        "relax_egraph.build: compile 1 kernel for …: … ms",
        "relax_egraph.build: prepare constants, write bytecode: … ms",
    ]


def test_what_caches_have_is_shown(tmp_path: Path) -> None:
    lines = [line for line in shown("DEBUG", tmp_path) if "ms" not in line]

    assert [re.sub("made, .*", "made", line) for line in lines] == [
        "relax_egraph.optimize.regions: rules of the book, and of no file",
        "relax_egraph.optimize.cache: saturated: made",
        "relax_egraph.optimize.cache: priced: made",
        "relax_egraph.lower.jit.compiling: fused_add_exp: compiled",
    ]


def test_nothing_is_shown_without_the_variable(tmp_path: Path) -> None:
    assert shown("", tmp_path) == []


def test_another_value_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAX_EGRAPH_LOG", "loud")

    with pytest.warns(RuntimeWarning, match="^RELAX_EGRAPH_LOG is 'loud'; it can be debug, info"):
        show()


def test_plans_that_are_not_kept_are_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RELAX_EGRAPH_CACHE", "off")

    with caplog.at_level(logging.DEBUG, "relax_egraph.optimize.cache"):
        rx.optimize(rx.parse(PROGRAM.split('"""')[1]))

    assert caplog.messages == [
        "saturated: made, not kept: the cache is off",
        "priced: made, not kept: the cache is off",
    ]


def test_a_schedule_that_was_not_priced_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    module = rx.parse("""
@I.ir_module
class Module:
    @T.prim_func
    def twice(x: T.Buffer((4, 8), "float32"), y: T.Buffer((4, 8), "float32")):
        T.func_attr({"anchor": "matmul", "seconds": 1e-6})
        for i, j in T.grid(4, 8):
            y[i, j] = x[i, j] + x[i, j]
""")

    with caplog.at_level(logging.INFO, "relax_egraph"):
        schedule_calls(module)

    assert caplog.messages == ["twice: scheduled as generic, priced as matmul, which does not fit"]


def test_a_region_that_is_cut_short_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    module = rx.parse(PROGRAM.split('"""')[1])

    with caplog.at_level(logging.INFO, "relax_egraph.optimize.regions"):
        rx.optimize(module, budget=Budget(nodes=1))

    assert [m.partition(":")[0] for m in caplog.messages] == ["a region of 3 classes"]
