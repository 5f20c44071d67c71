"""Modules in files come back whole, with their constants, or not at all."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from relax_egraph.errors import ScriptError
from relax_egraph.ir import IRModule
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.script import load_module, parse, print_module, save_module

TEXT = """
@R.function
def main(x: R.Tensor(("n", 2), "float32")):
    y = R.add(x, metadata["relax.expr.Constant"][0])
    z = R.add(y, metadata["relax.expr.Constant"][1])
    return z
"""
PLAIN = "@R.function\ndef main(x: R.Object):\n    return x\n"


def module_with(*constants: npt.NDArray[Any]) -> IRModule:
    return parse(TEXT, constants=constants)


@pytest.fixture
def module() -> IRModule:
    return module_with(np.array([[1.5, np.nan]], np.float32), np.array([-0.0, np.inf], np.float32))


def test_a_module_comes_back_with_its_constants(module: IRModule, tmp_path: Path) -> None:
    save_module(module, tmp_path / "model.py")

    read = load_module(tmp_path / "model.py")

    assert_structural_equal(read, module)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.py", "model.py.npz"]


def test_a_module_without_constants_is_its_text(tmp_path: Path) -> None:
    module = parse(PLAIN)

    save_module(module, tmp_path / "model.py")

    assert [p.name for p in tmp_path.iterdir()] == ["model.py"]
    assert (tmp_path / "model.py").read_text("utf-8") == print_module(module)


def test_a_text_that_a_user_wrote_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLAIN)

    assert_structural_equal(load_module(tmp_path / "mine.py"), parse(PLAIN))


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(PLAIN.replace("return x", "return y"))

    with pytest.raises(ScriptError) as raised:
        load_module(path)

    assert str(raised.value) == (
        f"{path}:3:12: undefined variable y\n        return y\n               ^"
    )


def test_the_constants_of_another_module_are_refused(module: IRModule, tmp_path: Path) -> None:
    save_module(module, tmp_path / "model.py")
    text = (tmp_path / "model.py").read_text()
    save_module(module_with(*np.ones((2, 2), np.float32)), tmp_path / "model.py")
    (tmp_path / "model.py").write_text(text)

    with pytest.raises(ScriptError) as raised:
        load_module(tmp_path / "model.py")

    assert raised.value.message == (
        "model.py.npz does not hold the constants of this text: its digest differs"
    )


def test_missing_constants_are_refused(module: IRModule, tmp_path: Path) -> None:
    save_module(module, tmp_path / "model.py")
    (tmp_path / "model.py.npz").unlink()

    with pytest.raises(ScriptError) as raised:
        load_module(tmp_path / "model.py")

    assert raised.value.message == "the constants are in model.py.npz, which is not there"


def test_an_archive_elsewhere_is_not_opened(tmp_path: Path) -> None:
    header = f"# constants: ../secret.npz sha256={'0' * 64}\n"
    (tmp_path / "model.py").write_text(header + PLAIN)

    with pytest.raises(ScriptError) as raised:
        load_module(tmp_path / "model.py")

    assert raised.value.message == (
        "the constants are in ../secret.npz, which is not beside the text"
    )


def test_a_file_that_cannot_be_written_leaves_the_old_one(
    module: IRModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_module(parse(PLAIN), tmp_path / "model.py")

    def full(descriptor: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        save_module(module, tmp_path / "model.py")

    assert [p.name for p in tmp_path.iterdir()] == ["model.py"]
    assert_structural_equal(load_module(tmp_path / "model.py"), parse(PLAIN))
