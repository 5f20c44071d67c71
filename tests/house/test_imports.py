"""What is loaded by what: little to import the package, and little to run a saved file."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import relax_egraph as rx

ROOT = Path(rx.__file__).parent
LAZY = [p for p in ROOT.rglob("__init__.py") if "load_lazily(" in p.read_text("utf-8")] + [
    ROOT / "lower" / "jit" / "__init__.py",
    ROOT / "vm" / "__init__.py",
]

LOADED = """
import sys
{script}
others = {{m.partition(".")[0] for m in sys.modules}} - sys.stdlib_module_names
print(*sorted(m for m in others if not m.startswith("_")))
"""

PROGRAM = """
@R.function
def main(x: R.Tensor(("n", 8), "bfloat16")):
    with R.dataflow():
        gv = R.nn.softmax(R.add(x, x))
        R.output(gv)
    return gv
"""


def loaded_by(script: str, *args: object) -> list[str]:
    """The packages that are not Python's own, after `script`."""
    command = [sys.executable, "-c", LOADED.format(script=script), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()[-1].split()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "model.rxe"
    rx.build(rx.parse(PROGRAM)).save(path)
    np.save(path.with_name("x.npy"), np.ones((3, 8), "bfloat16"))
    return path


def test_to_import_the_package_loads_nothing_else() -> None:
    script = (
        "import relax_egraph; dir(relax_egraph); assert 'relax_egraph.base.forks' in sys.modules"
    )

    assert loaded_by(script) == ["relax_egraph"]


def test_what_runs_a_saved_file_loads_numpy_and_llvmlite(saved: Path) -> None:
    script = """
import relax_egraph as rx
import relax_egraph.vm
executable = rx.load(sys.argv[1])
x = __import__("numpy").load(sys.argv[2]).view("bfloat16")
for threads in (1, 2):
    assert (rx.VirtualMachine(executable, num_threads=threads)["main"](x) == 0.125).all()
others = {f"relax_egraph.vm.{name}" for name in ("debugger", "exec_builder", "profile", "timing")}
assert not others & {*sys.modules}
"""

    loaded = loaded_by(script, saved, saved.with_name("x.npy"))

    assert loaded == ["llvmlite", "ml_dtypes", "numpy", "relax_egraph"]


def test_so_does_the_command_but_for_click(saved: Path) -> None:
    script = """
from relax_egraph.cli import commands
commands(["run", sys.argv[1], "--input", f"x={sys.argv[2]}"], standalone_mode=False)
"""

    loaded = loaded_by(script, saved, saved.with_name("x.npy"))

    assert loaded == ["click", "llvmlite", "ml_dtypes", "numpy", "relax_egraph"]


def test_help_loads_what_prints_alone() -> None:
    script = """
from relax_egraph.cli import commands
from relax_egraph.cli.group import MODULES
for arguments in ([], *([name] for name in MODULES), ["rules", "check"], ["rules", "list"]):
    commands([*arguments, "--help"], standalone_mode=False)
"""

    assert loaded_by(script) == ["click", "relax_egraph", "rich"]


def test_the_command_for_e_graphs_loads_no_symbols(tmp_path: Path) -> None:
    script = """
from relax_egraph.cli import commands
commands(["extract", "--json", sys.argv[1]], standalone_mode=False)
"""
    node = {"op": "x", "children": [], "eclass": "a", "cost": 1}
    egraph = tmp_path / "egraph.json"
    egraph.write_text(json.dumps({"nodes": {"n": node}, "root_eclasses": ["a"]}))

    assert loaded_by(script, egraph) == ["click", "numpy", "relax_egraph", "rich"]


PROGRAM_IN_MEMORY = ["ml_dtypes", "mpmath", "numpy", "relax_egraph", "sympy"]


def test_a_module_prints_though_nothing_was_parsed() -> None:
    loaded = loaded_by("import relax_egraph as rx; rx.BlockBuilder().get().script()")

    assert set(loaded) - {"cython_runtime"} == {*PROGRAM_IN_MEMORY}


def test_a_program_is_read_by_numpy_and_sympy() -> None:
    loaded = loaded_by(f"import relax_egraph as rx\nrx.parse({PROGRAM!r}).script()")

    assert set(loaded) - {"cython_runtime"} == {*PROGRAM_IN_MEMORY}


def test_the_engine_of_egglog_is_one_with_and_without_its_package() -> None:
    script = """
from relax_egraph.egraph.bindings import EGraph
assert not {"egglog", "egglog.bindings"} & {*sys.modules}
import egglog
import egglog.bindings
assert egglog.bindings.EGraph is EGraph
egglog.EGraph().check(egglog.eq(egglog.i64(1) + egglog.i64(2)).to(egglog.i64(3)))
"""
    backwards = """
import egglog
from relax_egraph.egraph.bindings import EGraph
assert egglog.bindings.EGraph is EGraph
"""

    assert "egglog" in loaded_by(script)
    assert "egglog" in loaded_by(backwards)


@pytest.mark.parametrize("package", LAZY, ids=lambda path: path.parent.name)
def test_what_type_checkers_see_of_a_package_is_what_it_has(package: Path) -> None:
    """The imports under ``TYPE_CHECKING`` and the table of `load_lazily` say the same."""
    tree = ast.parse(package.read_text("utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    (call,) = [
        n.value for n in tree.body if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)
    ]
    seen = {
        (n.module, a.name) for n in block.body if isinstance(n, ast.ImportFrom) for a in n.names
    }
    names = ast.literal_eval(call.args[1])
    modules = [ast.literal_eval(k.value) for k in call.keywords]

    table = {(home, name) for home, there in names.items() for name in there}
    table |= {tuple(path.rsplit(".", 1)) for paths in modules for path in paths}

    assert table == seen


def test_rule_files_are_checked_by_an_engine_that_nobody_has_loaded() -> None:
    script = """
import relax_egraph as rx
try:
    rx.rules.load("(rewrite (R.expp x) x)")
except ValueError as error:
    assert str(error).startswith("<rules>:1:10: unknown operator R.expp"), error
else:
    sys.exit(1)
assert "relax_egraph.egraph.bindings" in sys.modules
"""

    assert "egglog" not in loaded_by(script)


def test_a_name_is_what_it_stands_for_though_a_module_has_it_too() -> None:
    script = """
import relax_egraph.build, relax_egraph.optimize, relax_egraph.calibrate
import relax_egraph as rx
assert all(callable(f) for f in (rx.build, rx.optimize, rx.rules.load))
assert {"build", "optimize", "rules", "te"} <= {*dir(rx)} & {*rx.__all__}
assert rx.build is sys.modules["relax_egraph.build"].build
try:
    rx.nothing
except AttributeError as error:
    assert str(error) == "module 'relax_egraph' has no attribute 'nothing'"
from relax_egraph import *
assert optimize is rx.optimize
"""

    assert "relax_egraph" in loaded_by(script)


def test_python_suggests_the_nearest_name_of_a_package() -> None:
    script = "import relax_egraph as rx; rx.optimise"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    message = "module 'relax_egraph' has no attribute 'optimise'. Did you mean: 'optimize'?"
    assert done.stderr.splitlines()[-1] == f"AttributeError: {message}"
