"""Movement, slices, index tensors, and conditions on sizes of exported programs."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

import relax_egraph as rx  # noqa: E402
from relax_egraph.errors import RunError  # noqa: E402

Function = Callable[..., Any]


class Program(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.forward = function


def machine(function: Function, *inputs: Any, dynamic: Any = None) -> rx.VirtualMachine:
    """The machine of `function`, exported with `inputs`."""
    exported = torch.export.export(Program(function), inputs, dynamic_shapes=dynamic)
    return rx.VirtualMachine(rx.build(rx.optimize(rx.from_torch(exported))))


def agree(results: Any, expected: Any) -> None:
    """Assert that `results` are those of torch."""
    own: Sequence[Any] = results if isinstance(results, tuple) else (results,)
    wanted: Sequence[Any] = expected if isinstance(expected, tuple) else (expected,)
    assert len(own) == len(wanted)
    for one, other in zip(own, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one), other.numpy(), rtol=1e-5, atol=1e-6)


def moved(x: Any) -> Any:
    return (
        torch.cat([x[1:, ::2], x[:-1, 1::2]], dim=1),
        x.roll(3, 0).roll((1, -1), (0, 1)),
        x[1:].repeat(2, 1, 1),
        x[-1].expand(3, -1),
        x.unfold(0, 2, 1),
        x.flip(0, 1).tril(-1),
        torch.nn.functional.pad(x, (1, -1, 0, 2), value=7.0),
        torch.nn.functional.pad(x[None], (1, 2, 1, 1), mode="reflect"),
        torch.diag_embed(x, offset=-1),
        torch.select_scatter(x, x[0] * 2, 0, -1),
        x.repeat_interleave(2, dim=0),
        x * (x.shape[0] ** 0.5) + x.shape[1] / 3,
    )


def test_movement_at_two_sizes() -> None:
    """Moves of a tensor with a dynamic axis; sizes are numbers of the arithmetic, too."""
    made = machine(moved, torch.randn(6, 8), dynamic=({0: torch.export.Dim("n", min=4)},))
    for rows in (5, 9):
        x = torch.randn(rows, 8)
        agree(made["main"](x), moved(x))


def bordered(x: Any, y: Any) -> Any:
    pad, width = torch.nn.functional.pad, y.shape[0]
    return pad(x, (width, width - 1), mode="reflect"), pad(x, (width, 1), mode="replicate")


def test_borders_of_a_late_width() -> None:
    x, width = torch.randn(2, 3, 9), torch.export.Dim("width", min=2, max=6)
    made = machine(bordered, x, torch.zeros(4), dynamic=({}, {0: width}))
    for size in (2, 5):
        agree(made["main"](x, torch.zeros(size)), bordered(x, torch.zeros(size)))


def indexed(x: Any, i: Any, mask: Any) -> Any:
    y = x.clone()
    y[:, i, 1:] = 3.0
    y[mask] += 1.0
    return (
        x[i],
        x[:, i],
        x[i, :, i - 1],
        x[:, i[:, None], i],
        x[mask],
        x[..., -1],
        y,
        torch.zeros(4, *x.shape[1:]).index_add(0, i % 4, x[i]),
        x.scatter_reduce(0, i[:, None, None].expand(-1, *x.shape[1:]) % 3, x[i], "amax"),
        mask.nonzero(),
    )


def test_index_tensors_and_masks_at_two_sizes() -> None:
    """Reads and writes at index tensors and masks; the run decides how many a mask selects."""
    n, k = torch.export.Dim("n", min=5), torch.export.Dim("k", min=2)

    def inputs(rows: int, count: int) -> tuple[Any, ...]:
        return torch.randn(rows, 5, 5), torch.randint(-4, 4, (count,)), torch.rand(rows) > 0.4

    made = machine(indexed, *inputs(6, 3), dynamic=({0: n}, {0: k}, {0: n}))
    for rows, count in ((5, 2), (11, 4)):
        example = inputs(rows, count)
        agree(made["main"](*example), indexed(*example))


@pytest.mark.parametrize(
    ("function", "refusal"),
    [
        (lambda x, i: x[i], "index: index 7 is outside of axis 0 of extent 4, needs -4 to 3"),
        (
            lambda x, i: torch.index_select(x, 0, i),
            "index_select: index 7 is outside of axis 0 of extent 4, needs 0 to 3",
        ),
        (
            lambda x, i: torch.nn.functional.embedding(i, x),
            "embedding: index 7 is outside of axis 0 of extent 4, needs 0 to 3",
        ),
        (
            lambda x, i: x.scatter(0, i[:, None], 1.0),
            "scatter: index 7 is outside of axis 0 of extent 4, needs 0 to 3",
        ),
    ],
)
def test_indices_outside_are_refused(function: Function, refusal: str) -> None:
    """An index outside of its axis is refused by the run, as torch does."""
    made = machine(function, torch.randn(4, 2), torch.tensor([0, 3]))
    with pytest.raises(RunError, match=refusal):
        made["main"](torch.randn(4, 2), torch.tensor([7, 1]))


def test_negative_index_is_refused_where_torch_does() -> None:
    """Tables of embeddings and gathers do not count from the end."""
    made = machine(lambda x, i: x.gather(0, i), torch.randn(4), torch.tensor([0, 3]))
    with pytest.raises(RunError, match="gather: index -1 is outside of axis 0 of extent 4"):
        made["main"](torch.randn(4), torch.tensor([-1, 1]))


def cut(x: Any, count: Any) -> Any:
    rows = count.item()
    torch._check(rows >= 1)
    torch._check(rows <= x.shape[0])
    return x[:rows], torch.ones(rows)


def test_value_of_a_tensor_as_a_size() -> None:
    """A size is read of a tensor; conditions on it are checked by the run."""
    made = machine(cut, torch.randn(6, 2), torch.tensor(4))
    x = torch.randn(6, 2)
    agree(made["main"](x, torch.tensor(5)), (x[:5], torch.ones(5)))
    for wrong in (0, 7, -1):
        with pytest.raises(RunError):
            made["main"](x, torch.tensor(wrong))


def test_value_of_a_tensor_as_a_number() -> None:
    """A number that is read of a tensor may be negative, and a float."""
    made = machine(
        lambda x, a, b: x * a.item() + b.item(), torch.randn(3), torch.tensor(2), torch.tensor(0.5)
    )
    x = torch.randn(3)
    agree(made["main"](x, torch.tensor(-2), torch.tensor(-0.25)), x * -2 - 0.25)
