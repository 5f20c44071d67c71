"""Programs of torch whose values are compared with torch's, in the order of the source."""

import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import ModelError
from tests.support.command import invoke

torch = pytest.importorskip("torch")

from relax_egraph.frontends.torch import graph, registry  # noqa: E402  it imports torch
from relax_egraph.reasons import first_difference  # noqa: E402

WRONG = """\
; eˣ is even
; float: exact
(rewrite (R.exp (R.negative z)) (R.exp z) :name "exp-is-even")
"""

X = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)


class Layers(torch.nn.Module):
    """Two layers and a count of calls; the lines of its operators are among what is found."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(8, 4)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: Any) -> Any:
        self.calls.add_(1.0)
        y = torch.relu(self.inner(x))
        return torch.exp(-y).sum(dim=1), y


@pytest.fixture
def program() -> Any:
    torch.manual_seed(0)
    rows = torch.export.Dim("rows")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of itself
        return torch.export.export(Layers(), (torch.zeros(3, 8),), dynamic_shapes=({0: rows},))


@pytest.fixture
def file(program: Any, tmp_path: Path) -> Path:
    path = tmp_path / "model.pt2"
    torch.export.save(program, path)
    return path


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    path = tmp_path / "my.egg"
    path.write_text(WRONG)
    return path


def inputs() -> dict[str, Any]:
    return {"x": X, "b_calls": np.zeros(1, np.float32)}


def absolute(node: Any) -> Any:
    """A wrong converter of ``relu``."""
    return node.emit("abs", node.operand("self", "float32"))


def line(text: str) -> str:
    """The place of the line with `text` in this file."""
    lines = Path(__file__).read_text("utf-8").splitlines()
    return f"{__file__}:{1 + next(k for k, each in enumerate(lines) if text in each)}"


def test_a_program_that_agrees_says_how_nearly(program: Any) -> None:
    found = rx.diff(program, inputs())

    assert not found.differs
    assert found.results == 3  # the user's two, and the buffer
    assert found.found.difference.apart < 1e-6
    assert str(found).startswith("the results agree with torch; most apart is ")


def test_the_first_value_that_a_rule_makes_wrong_is_named_with_the_rule(
    program: Any, wrong: Path
) -> None:
    found = rx.diff(program, inputs(), [wrong])

    assert found.value == f"exp = aten.exp.default ({line('torch.exp(-y)')})"
    assert found.found.stage == "optimization"
    text = str(found)
    assert "as imported it is right; rules make it wrong:\n" in text
    assert f"exp-is-even ({wrong}:3:1): unsound by itself" in text
    assert "right without exp-is-even (" in text


def test_a_wrong_converter_is_told_from_a_wrong_rule(
    program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def converter_of(name: str) -> Any:
        return absolute if name == "aten.relu.default" else registry.converter_of(name)

    monkeypatch.setattr(graph, "converter_of", converter_of)

    found = rx.diff(program, inputs())

    assert found.value == f"relu = aten.relu.default ({line('torch.relu(')})"
    assert found.found.stage == "import"
    assert "it is so before any rule" in str(found)


def test_a_kernel_is_named_if_no_rule_is_to_blame(
    program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = first_difference.built

    def damaged(module: Any, function: str, args: Sequence[Any]) -> list[Any]:
        return [value + 1 for value in built(module, function, args)]

    monkeypatch.setattr(first_difference, "built", damaged)

    found = rx.diff(program, inputs())

    assert found.found.stage == "optimization"
    assert found.value.startswith("add = aten.add.Tensor (")
    assert found.found.kernels == ("R.add",)
    assert "no rule is to blame: look at the kernels R.add" in str(found)


def test_a_value_that_is_wrong_only_when_it_is_fused_is_found_by_halving(
    program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = first_difference.built

    def damaged(module: Any, function: str, args: Sequence[Any]) -> list[Any]:
        values = built(module, function, args)
        is_apart = len(values) > 3
        return values if is_apart else [v + 1 if v.ndim == 1 and v.size > 1 else v for v in values]

    monkeypatch.setattr(first_difference, "built", damaged)

    assert rx.diff(program, inputs()).value.startswith("sum_1 = aten.sum.dim_IntList (")


def test_the_command_finds_the_same(file: Path, wrong: Path, tmp_path: Path) -> None:
    archive = tmp_path / "x.npz"
    np.savez(archive, **inputs())

    right = invoke("diff", file, "--against", "torch", "--inputs", archive)
    found = invoke("diff", file, "--inputs", archive, "--rules", wrong)
    told = json.loads(invoke("diff", file, "--inputs", archive, "--rules", wrong, "--json").stdout)

    assert (right.exit_code, found.exit_code) == (0, 1)
    assert "exp-is-even" in found.output
    assert told["source"]["operator"] == "aten.exp.default"
    assert told["stage"] == "optimization"
    assert [[c["rule"] for c in rules] for rules in told["bisected"]["sets"]] == [["exp-is-even"]]


def test_arguments_that_are_not_given_are_random(file: Path) -> None:
    result = invoke("diff", file, "--size", "x_0=2", "--json")

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["random"] == ["x", "b_calls"]


def test_other_commands_take_the_file_too(file: Path) -> None:
    result = invoke("show", file)

    assert result.exit_code == 0, result.output
    assert 'x: R.Tensor(("x_0", 8), "float32")' in result.output


def refusals(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    script = tmp_path / "program.py"
    script.write_text("")
    yield script, "--against torch needs a program of torch (.pt2)"
    other = tmp_path / "other.pt2"
    other.write_bytes(b"other")
    yield other, f"{other} has no exported program of torch: "


def test_other_files_are_refused(tmp_path: Path) -> None:
    for path, said in refusals(tmp_path):
        result = invoke("diff", path)
        assert result.exit_code != 0
        assert said in result.output.splitlines()[-1]
    with pytest.raises(ModelError, match="has no exported program of torch: "):
        rx.from_torch(tmp_path / "other.pt2")
    with pytest.raises(FileNotFoundError):
        rx.from_torch(tmp_path / "none.pt2")
