"""What the README shows is what happens."""

import re
import runpy
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph import rules
from relax_egraph.errors import RuleError

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
INDENTED = [textwrap.dedent(block) for block in re.findall(r"(?:^ {4}.*\n)+", README, re.MULTILINE)]


def block_with(text: str) -> str:
    (block,) = (b for b in INDENTED if text in b)
    return block


def test_the_worked_rewrite_is_in_the_book() -> None:
    assert block_with("fma-from-add-multiply") in rules.text("fma")


def test_the_worked_example_runs_and_prints_what_it_says() -> None:
    x, y = np.random.default_rng(0).standard_normal((2, 7, 4)).astype(np.float32)
    names: dict[str, Any] = {"x": x, "y": y}

    exec(PYTHON[0], names)

    promised = re.findall(r"print\(best\.script\(\)\) +# (.+)", PYTHON[0])[0]
    assert promised in names["best"].script()
    np.testing.assert_allclose(names["main"](x, y), x * y + y, rtol=1e-6)


def test_the_mistake_is_reported_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = block_with("; cos(-x) = cos(x)")
    (tmp_path / "my.egg").write_text(good.replace("(R.cos (", "(R.cosh2 (", 1))
    monkeypatch.chdir(tmp_path)

    with pytest.raises(RuleError) as error:
        rx.optimize(rx.IRModule(), rules=["my.egg"])

    assert str(error.value) == block_with("did you mean").rstrip("\n")


def test_it_fits_on_a_few_screens() -> None:
    assert len(README.splitlines()) <= 120


def test_the_module_in_a_python_file_is_read_and_runs(tmp_path: Path) -> None:
    (shown,) = (block for block in PYTHON if "@I.ir_module" in block)
    file = tmp_path / "shown.py"
    file.write_text(shown.partition("# ")[2].partition("\n")[0] + "\n" + shown, "utf-8")
    x, w = np.random.default_rng(0).standard_normal((2, 64, 64)).astype(np.float32)

    module = runpy.run_path(str(file))["Module"]
    out = rx.VirtualMachine(rx.build(module))["main"](x[:5], w[:, :10])

    e = np.exp(x[:5] @ w[:, :10])
    np.testing.assert_allclose(out, e / e.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-7)
