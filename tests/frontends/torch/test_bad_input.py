"""Programs that cannot be converted: `from_torch` says what, where, and what is needed.

Under ``torch.compile`` they run in torch, with one warning; ``strict`` refuses them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

import relax_egraph as rx
from relax_egraph.errors import ModelError, RunError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

from relax_egraph.frontends.torch_backend.backend import relax_egraph  # noqa: E402
from relax_egraph.frontends.torch_backend.compiling import Unsupported  # noqa: E402

X = torch.arange(1.0, 17.0).reshape(4, 4)
COMPLEX = "the operator is not supported for complex numbers"
SPARSE = "it is a tensor of layout sparse_coo, needs a strided one: x.to_dense()"
QUANTIZED = "its tensor is quantized, needs its integers and scale: x.int_repr(), x.q_scale()"
META = "it is on the device meta, needs the CPU"


def _rounded(x: Any) -> Any:
    return torch.quantize_per_tensor(x, 0.5, 0, torch.qint8)


@dataclass(frozen=True)
class Bad:
    """A function of a tensor, and the lines that say why it cannot be converted."""

    function: Callable[[Any], Any]
    said: tuple[str, ...]
    compiled: bool = True
    """Whether ``torch.compile`` hands it on; else torch runs it by itself."""


BAD: Mapping[str, Bad] = {
    "an operator without converter": Bad(
        lambda x: torch.linalg.svdvals(x) + torch.linalg.svdvals(x * 2),
        ("aten._linalg_svd.default: the operator is not supported (2 times)",),
    ),
    "an operator that checks its results": Bad(
        lambda x: torch.linalg.inv(x + torch.eye(4)) * 2,
        ("aten.linalg_inv_ex.default: the operator is not supported",),
    ),
    "random numbers": Bad(
        lambda x: (x + torch.rand_like(x)) * 0,
        ("aten.rand_like.default: it draws random numbers, needs them as an input",),
    ),
    "complex numbers": Bad(
        lambda x: torch.complex(x, x).tanh().abs() * 2,
        (f"aten.tanh.default: {COMPLEX}",),
    ),
    "another device": Bad(
        lambda x: (x * 2).to("meta"),
        (f"aten._to_copy.default: its result: {META}",),
    ),
    "a sparse tensor": Bad(
        lambda x: torch.sparse.mm(x.to_sparse(), x) * 2,
        (f"aten._to_sparse.default: its result: {SPARSE}",),
        compiled=False,
    ),
    "a quantized tensor": Bad(
        lambda x: _rounded(x).dequantize() * 2,
        (f"aten.quantize_per_tensor.default: {QUANTIZED}",),
    ),
}


class _Module(torch.nn.Module):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, x: Any) -> Any:
        return self._function(x)


@pytest.mark.parametrize("name", BAD)
def test_a_program_that_cannot_be_converted_is_refused(name: str) -> None:
    bad = BAD[name]
    program = torch.export.export(_Module(bad.function), (X,), strict=False)

    with pytest.raises(ModelError) as refusal:
        rx.from_torch(program)

    head, *lines = str(refusal.value).splitlines()
    assert re.fullmatch(r"the program has .* that cannot be converted:", head)
    for said in bad.said:
        assert any(re.fullmatch(rf"  {re.escape(said)}.*: {__file__}:\d+", n) for n in lines), lines


@pytest.mark.parametrize("name", [name for name, bad in BAD.items() if bad.compiled])
def test_torch_runs_what_cannot_be_compiled_and_strict_refuses_it(name: str) -> None:
    bad = BAD[name]
    fast = torch.compile(bad.function, backend=relax_egraph)
    with pytest.warns(Unsupported) as warned:
        result = fast(X)

    wanted = bad.function(X)
    assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
    assert wanted.is_meta or torch.allclose(result, wanted)
    (warning,) = warned
    for said in bad.said:
        assert said in str(warning.message)

    torch._dynamo.reset()
    strict = torch.compile(bad.function, backend=relax_egraph, options={"strict": True})
    with pytest.raises(Exception, match="the graph has nodes that cannot be converted") as refusal:
        strict(X)
    for said in bad.said:
        assert said in str(refusal.value)


INPUTS: Mapping[str, tuple[Any, str]] = {
    "sparse": (X.to_sparse(), SPARSE),
    "meta": (X.to("meta"), META),
}


@pytest.mark.parametrize("name", INPUTS)
def test_an_input_of_another_kind_is_refused_by_its_name(name: str) -> None:
    value, said = INPUTS[name]
    program = torch.export.export(_Module(lambda x: x * 2), (value,), strict=False)

    with pytest.raises(ModelError) as refusal:
        rx.from_torch(program)

    assert str(refusal.value) == f"input 'x': {said}"


# --- sizes that data decide -------------------------------------------------------------

LATE: Mapping[str, Callable[[Any], Any]] = {
    "places": lambda x: torch.nonzero(x > 5).sum(0),
    "chosen elements": lambda x: x[x > 5] * 2,
    "an element as a size": lambda x: torch.ones(x[0, 2].int().item()) * x.sum(),
}


@pytest.mark.parametrize("name", LATE)
def test_sizes_that_data_decide_are_computed_by_the_run(name: str) -> None:
    program = torch.export.export(_Module(LATE[name]), (X,), strict=False)

    machine = rx.VirtualMachine(rx.build(rx.optimize(rx.from_torch(program))), num_threads=1)

    for x in (X, X.flip(0)):
        result = torch.from_dlpack(machine["main"](x))
        torch.testing.assert_close(result, LATE[name](x))


def test_rows_are_repeated_by_counts_that_are_not_negative() -> None:
    def repeated(x: Any) -> Any:
        return x.repeat_interleave(x[0].long() - 2, dim=0)

    program = torch.export.export(_Module(repeated), (X + 1,), strict=False)
    machine = rx.VirtualMachine(rx.build(rx.optimize(rx.from_torch(program))), num_threads=1)

    result = torch.from_dlpack(machine["main"](X + 1))
    torch.testing.assert_close(result, repeated(X + 1))
    with pytest.raises(RunError, match="repeats can not be negative"):
        machine["main"](X)


def test_a_negative_element_is_no_size() -> None:
    program = torch.export.export(_Module(LATE["an element as a size"]), (X,), strict=False)
    machine = rx.VirtualMachine(rx.build(rx.optimize(rx.from_torch(program))), num_threads=1)

    with pytest.raises(RunError, match="-3"):
        machine["main"](-X)
