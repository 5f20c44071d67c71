"""Installed packages add operators and rules by entry points."""

import subprocess
import sys
from pathlib import Path

import pytest

OPERATORS = """
import numpy as np
import relax_egraph as rx
from relax_egraph import te
from relax_egraph.ir.struct_info import TensorStructInfo

def loops(x):
    return te.compute(x.shape, lambda *i: x[i] + x[i], "twice")

@rx.operator("acme.twice", numpy=lambda x: x + x, te=loops, elementwise=True)
def twice(x: TensorStructInfo):
    return x

@rx.operator("acme.half", numpy=lambda x: (x / 2).astype(x.dtype))
def half(x: TensorStructInfo):
    return x

ALL = [twice, half]
RULES = \'(rewrite (R.acme.half (R.acme.twice x)) x :name "half-of-twice")\'
WRONG_RULES = "(rewrite (R.acme.halve x) x)"
"""

PROGRAM = '''
import numpy as np
import relax_egraph as rx

module = rx.parse("""
@R.function
def main(x: R.Tensor(("n",), "float32")):
    with R.dataflow():
        a = R.acme.half(R.acme.twice(x))
        b = R.acme.twice(a)
        R.output(b)
    return b
""")
best = rx.optimize(module)
print("half" in str(best), "R.acme.twice" in str(best))
print(rx.VirtualMachine(rx.build(best))["main"](np.ones(2, np.float32)))
'''


def installed(folder: Path, entry_points: str) -> None:
    """Install a package with these entry points in `folder`."""
    (folder / "acme.py").write_text(OPERATORS)
    metadata = folder / "acme-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.2\n")
    (metadata / "entry_points.txt").write_text(entry_points)


def run(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    beside = f"import sys; sys.path[:0] = [{str(folder)!r}, {str(Path(__file__).parents[2])!r}]\n"
    command = [sys.executable, "-c", beside + program]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def test_a_package_adds_operators_and_rules(tmp_path: Path) -> None:
    installed(
        tmp_path,
        "[relax_egraph.operators]\nacme = acme:ALL\n[relax_egraph.rules]\nacme = acme:RULES\n",
    )

    done = run(tmp_path, PROGRAM)

    assert (done.stdout, done.stderr) == ("False True\n[2. 2.]\n", "")


def test_a_broken_package_is_a_warning(tmp_path: Path) -> None:
    installed(
        tmp_path,
        "[relax_egraph.operators]\nacme = acme:ALL\nlost = acme.lost:ALL\nnone = acme:OPERATORS\n"
        "[relax_egraph.rules]\nhalve = acme:WRONG_RULES\nacme = acme:RULES\n",
    )

    done = run(tmp_path, PROGRAM)

    assert done.stdout == "False True\n[2. 2.]\n"
    warnings = [line for line in done.stderr.splitlines() if "PluginWarning" in line]
    names = [line.partition("PluginWarning: the plug-in ")[2].split(": ")[0] for line in warnings]
    assert names == [
        "'lost' of acme 1.2 is left out",
        "'none' of acme 1.2 is left out",
        "'halve' of acme 1.2 is left out",
    ]
    assert "unknown operator R.acme.halve" in done.stderr


@pytest.mark.parametrize("group", ["operators", "rules"])
def test_a_package_is_loaded_when_it_is_needed(tmp_path: Path, group: str) -> None:
    installed(tmp_path, f"[relax_egraph.{group}]\nacme = acme:ALL\n")

    done = run(tmp_path, "import relax_egraph.ir as ir\nprint('acme' in sys.modules)\n")

    assert (done.stdout, done.stderr) == ("False\n", "")


CALLING = """
import relax_egraph as rx
module = rx.parse('''
@R.function
def main(x: R.Tensor((2,), "float32")):
    with R.dataflow():
        y = R.nn.relu(x)
        R.output(y)
    return y
''')
prices = rx.Prices(calls={"acme.relu": 0.0})
print("acme.relu" in rx.optimize(module).script())
print("acme.relu" in rx.optimize(module, prices=prices).script())
"""


def test_a_package_calls_its_functions_where_they_have_a_price(tmp_path: Path) -> None:
    installed(tmp_path, "[relax_egraph.rules]\nacme = acme:CALLS\n")
    with (tmp_path / "acme.py").open("a") as acme:
        acme.write(
            "CALLS = '(rewrite (R.nn.relu x) (R.call_pure_packed \"acme.relu\" (vec-of x)))'\n"
        )

    done = run(tmp_path, CALLING)

    assert (done.stdout, done.stderr) == ("False\nTrue\n", "")
