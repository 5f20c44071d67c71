"""torch.compile through our backend: equal to torch, and one program for all sizes."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from bench.torch.calls import noting  # noqa: E402
from relax_egraph.frontends.torch_backend.backend import relax_egraph  # noqa: E402
from relax_egraph.frontends.torch_backend.compiling import Unsupported  # noqa: E402
from relax_egraph.frontends.torch_backend.program import Program  # noqa: E402


@pytest.fixture(autouse=True)
def compiled() -> Iterator[list[Program]]:
    """The programs that a test compiles; warnings are errors."""
    torch.manual_seed(0)
    with warnings.catch_warnings(), noting() as programs:
        warnings.simplefilter("error", Unsupported)
        yield programs


def mlp() -> Any:
    layers = torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)
    return torch.nn.Sequential(*layers)


def test_one_program_runs_all_sizes(compiled: list[Program]) -> None:
    model = mlp()
    fast = torch.compile(model, backend=relax_egraph, dynamic=True)

    with torch.no_grad():
        for size in (5, 2, 9, 64):
            x = torch.randn(size, 8)
            torch.testing.assert_close(fast(x), model(x))

    assert len(compiled) == 1


def test_gradients_are_torchs(compiled: list[Program]) -> None:
    model = mlp()
    fast = torch.compile(model, backend=relax_egraph)
    x = torch.randn(5, 8, requires_grad=True)

    own = torch.autograd.grad(fast(x).square().sum(), [x, *model.parameters()])

    assert len(compiled) == 2
    wanted = torch.autograd.grad(model(x).square().sum(), [x, *model.parameters()])
    torch.testing.assert_close(own, wanted)


def filtered(z: Any, x: Any) -> tuple[Any, Any]:
    return torch.fft.ifft(z.mT * torch.fft.fft(x)), z.conj() + 1


def test_complex_numbers_go_in_and_out(compiled: list[Program]) -> None:
    fast = torch.compile(filtered, backend=relax_egraph, options={"strict": True})
    x, z = torch.randn(4, 4), torch.randn(4, 4, dtype=torch.complex64)

    for case in (z, z.conj(), z.mT):
        torch.testing.assert_close(fast(case, x), filtered(case, x))
    assert len(compiled) <= 3


def spectrum(x: Any) -> Any:
    return torch.relu(torch.linalg.svdvals(x * 2).abs() + 1) + torch.linalg.svdvals(x).exp()


def test_what_is_not_supported_stays_in_torch() -> None:
    fast = torch.compile(spectrum, backend=relax_egraph)
    x = torch.randn(4, 4)

    with pytest.warns(Unsupported) as said:
        result = fast(x)

    torch.testing.assert_close(result, spectrum(x))
    (warning,) = said
    assert "aten._linalg_svd.default" in str(warning.message)
    assert "(2 times)" in str(warning.message)


def test_strict_refuses_it() -> None:
    fast = torch.compile(spectrum, backend=relax_egraph, options={"strict": True})

    with pytest.raises(Exception, match=r"aten\._linalg_svd\.default: the operator"):
        fast(torch.randn(4, 4))


def test_an_unknown_option_is_refused() -> None:
    fast = torch.compile(mlp(), backend=relax_egraph, options={"tolerence": 0.1})

    with pytest.raises(Exception, match=r"no option 'tolerence'.*tolerance"):
        fast(torch.randn(2, 8))


def test_inputs_are_not_copied_and_results_are_the_machines(compiled: list[Program]) -> None:
    def twice(x: Any) -> Any:
        return x * 2, x.reshape(-1)

    seen: list[int] = []
    made: list[int] = []
    fast = torch.compile(twice, backend=relax_egraph)
    fast(torch.randn(128, 256))
    (program,) = compiled
    ((threads, main),) = vars(program)["_mains"].items()

    def watched(*arrays: Any) -> Any:
        seen.extend(a.ctypes.data for a in arrays)
        results = main(*arrays)
        made.extend(r.ctypes.data for r in results)
        return results

    vars(program)["_mains"][threads] = watched
    x = torch.randn(128, 256)
    results = program([x])

    assert seen == [x.data_ptr()]
    assert made == [r.data_ptr() for r in results]


def test_strides_are_torchs() -> None:
    def images(x: Any) -> Any:
        return torch.relu(x) * 3, x.transpose(1, 2) + 1

    fast = torch.compile(images, backend=relax_egraph)
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)

    for own, wanted in zip(fast(x), images(x), strict=True):
        torch.testing.assert_close(own, wanted)
        assert own.stride() == wanted.stride()


def test_inputs_that_are_written_are_written() -> None:
    def count(x: Any, total: Any) -> Any:
        total.add_(x.sum())
        return x / total

    fast = torch.compile(count, backend=relax_egraph)
    x, own, wanted = torch.ones(4), torch.ones(()), torch.ones(())

    torch.testing.assert_close(fast(x, own), count(x, wanted))
    torch.testing.assert_close(own, wanted)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int64, torch.float64])
def test_dtypes(dtype: Any) -> None:
    def affine(x: Any) -> Any:
        return x * 2 + x

    x = torch.arange(12).reshape(3, 4).to(dtype)

    torch.testing.assert_close(torch.compile(affine, backend=relax_egraph)(x), affine(x))


def test_frozen_weights_are_constants_until_they_are_written(compiled: list[Program]) -> None:
    model = mlp()
    fast = torch.compile(model, backend=relax_egraph, options={"freeze": True})
    x = torch.randn(3, 8)

    with torch.no_grad():
        torch.testing.assert_close(fast(x), model(x))
        assert [len(vars(program)["_takes"]) for program in compiled] == [1]

        model[0].weight.mul_(2)
        for _ in range(2):
            torch.testing.assert_close(fast(x), model(x))

    assert [len(vars(program)["_takes"]) for program in compiled] == [1, 5]


def test_frozen_weights_are_those_of_one_model(compiled: list[Program]) -> None:
    def run(model: Any, x: Any) -> Any:
        return model(x)

    fast = torch.compile(run, backend=relax_egraph, options={"freeze": True})
    x = torch.randn(3, 8)

    with torch.no_grad():
        for model in (mlp(), mlp()):
            torch.testing.assert_close(fast(model, x), model(x))


def test_an_explanation_is_written(tmp_path: Any) -> None:
    page = tmp_path / "why.html"
    fast = torch.compile(mlp(), backend=relax_egraph, options={"explain": str(page)})

    with torch.no_grad():
        fast(torch.randn(3, 8))

    assert "<html" in page.read_text("utf-8")


def test_rules_of_the_user_are_applied(tmp_path: Any) -> None:
    rules = tmp_path / "my.egg"
    rules.write_text('(rewrite (R.cos (R.negative x)) (R.cos x) :name "cos-is-even")\n')
    fast = torch.compile(
        lambda x: torch.cos(-x), backend=relax_egraph, options={"rules": [str(rules)]}
    )
    x = torch.randn(8)

    np.testing.assert_allclose(fast(x).numpy(), np.cos(x.numpy()), rtol=1e-6)
