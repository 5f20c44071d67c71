"""Modules are found in the sources of tests, with the names around them."""

from pathlib import Path

from click.testing import CliRunner

from bench.tvm_scripts import main, outcome, scripts

SOURCE = """
import tvm
from tvm.script import ir as I, relax as R, tirx as T

def test_pass(dtype):
    n = T.int64()
    size = 4

    @I.ir_module(s_tir=True)
    class Before:
        I.module_attrs({"foo": 1})

        @R.function
        def main(x: R.Tensor((n, size), "float32")):
            return x

    @R.function
    def of_python(x: R.Tensor((2,), dtype)):
        return x

    @R.function
    def unknown(x: R.Tensor((2,), "float32")):
        return R.no_such_operator(x)

    with pytest.raises(ValueError):
        @R.function
        def refused(x: R.Tensor((2,), "float32")):
            return y
"""


def test_modules_are_read_with_the_names_around_them(tmp_path: Path) -> None:
    tmp_path.joinpath("test_it.py").write_text(SOURCE)

    found = list(scripts(tmp_path))
    outcomes = {s.node.name: outcome(s) for s in found if s.is_whole}

    assert [s.node.name for s in found] == ["Before", "of_python", "unknown"]
    assert {name: o.reason for name, o in outcomes.items()} == {
        "Before": "",
        "unknown": "unknown operator R.no_such_operator",
    }
    module = outcomes["Before"].module
    assert module is not None
    assert 'x: R.Tensor(("n", 4), "float32")' in module.script()


def test_the_reasons_are_counted(tmp_path: Path) -> None:
    tmp_path.joinpath("test_it.py").write_text(SOURCE)

    result = CliRunner().invoke(main, [str(tmp_path), "--examples"])

    assert result.output == (
        "3 modules, 1 with values that only Python knows\n"
        "of 2, 50.0% are read\n"
        "of the 2 for one CPU, 50.0%\n"
        "0 do not read back equal\n"
        "    1 unknown operator R.no_such_operator\n"
        "          test_it.py:22 unknown: unknown operator R.no_such_operator\n"
    )
