"""The whole models of the bench: what they compute, what they need, and how they are exported."""

import math

import numpy as np
import numpy.typing as npt
import pytest

import relax_egraph as rx
from bench import llama, resnet
from bench.networks import networks
from bench.ours import as_written, optimized
from bench.program import program_of
from bench.reference import error_of, exact
from bench.transformer import Sizes, encoder
from bench.work import least_bytes, operations
from bench.workloads import drawn
from relax_egraph import ir
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.module import IRModule

Arrays = tuple[npt.NDArray[np.float32], ...]

WIDTHS = llama.Widths(hidden=32, heads=4, groups=2, inner=48)
PAST, LENGTH = 5, 7


def decoding() -> tuple[IRModule, Arrays]:
    cache = (1, WIDTHS.groups, PAST, WIDTHS.head)
    caches = drawn(*cache, seed=1), drawn(*cache, seed=2)
    inputs = drawn(1, 1, WIDTHS.hidden), *llama.angles(WIDTHS, PAST, 1), *caches
    return llama.decode_step(WIDTHS), inputs


def in_place() -> tuple[IRModule, Arrays]:
    """The caches have a place for the token, where there is something else."""
    _, (*tokens, keys, values) = decoding()
    grown = [
        np.concatenate((a, drawn(1, WIDTHS.groups, 1, WIDTHS.head)), 2) for a in (keys, values)
    ]
    return llama.decode_in_place(WIDTHS), (*tokens, *grown)


def prefilling() -> tuple[IRModule, Arrays]:
    inputs = drawn(1, LENGTH, WIDTHS.hidden), *llama.angles(WIDTHS, 0, LENGTH)
    return llama.prefill(WIDTHS, LENGTH), inputs


MODELS = {
    "basic block": lambda: (resnet.basic_block(2, 4, 6), (drawn(2, 4, 6, 6),)),
    "bottlenecks": lambda: (resnet.resnet(1, (1, 1), 32, 10), (drawn(1, 3, 32, 32),)),
    "LLaMA decode": decoding,
    "LLaMA decode in place": in_place,
    "LLaMA prefill": prefilling,
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_runs_as_written_and_optimized(name: str) -> None:
    module, inputs = MODELS[name]()

    expected = exact(module, inputs)

    for compiled in (as_written, optimized):
        assert error_of(compiled(module, 1)(inputs).result(), expected) < 1e-5


def test_a_step_with_a_cache_is_the_last_token_of_a_prompt() -> None:
    """Both draw the same weights; keys and values are computed here, of the tokens before."""
    x, cos, sin = prefilling()[1]
    weights = iter(program_of(llama.decode_step(WIDTHS)).constants.values())
    scale, _, key, value = (next(weights).astype(np.float64) for _ in range(4))
    norm = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-5) * scale

    def heads(weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return (norm @ weight).reshape(1, LENGTH, WIDTHS.groups, WIDTHS.head).transpose(0, 2, 1, 3)

    first, second = np.split(heads(key), 2, axis=-1)
    keys = heads(key) * cos + np.concatenate((-second, first), axis=-1) * sin
    past = [a[:, :, :-1].astype(np.float32) for a in (keys, heads(value))]

    whole = exact(llama.prefill(WIDTHS, LENGTH), (x, cos, sin))
    last = exact(llama.decode_step(WIDTHS), (x[:, -1:], cos[-1:], sin[-1:], *past))

    np.testing.assert_allclose(last[:, 0], whole[:, -1], rtol=1e-5)


def test_a_step_in_place_writes_the_cache_and_computes_what_one_does_that_joins() -> None:
    module, inputs = in_place()
    given = [np.array(x) for x in inputs[3:]]
    best = rx.optimize(module)

    result = as_written(best, 1)(inputs).result()

    assert not any(name.startswith("relax.run") for name in rx.build(best).packed_names)
    assert error_of(result, exact(*decoding())) < 1e-5
    for before, after in zip(given, inputs[3:], strict=True):
        np.testing.assert_array_equal(before[:, :, :-1], after[:, :, :-1])
        assert not np.isclose(before[:, :, -1], after[:, :, -1]).any()


def test_turns_are_by_the_position_and_slower_from_pair_to_pair() -> None:
    cos, sin = llama.angles(WIDTHS, 3, 1)

    turns = [3.0, 0.3, 0.03, 0.003] * 2
    np.testing.assert_allclose(cos, [[math.cos(t) for t in turns]], rtol=1e-6)
    np.testing.assert_allclose(sin, [[math.sin(t) for t in turns]], rtol=1e-6)


def test_resnet50_has_its_convolutions_and_its_operations() -> None:
    program = program_of(resnet.resnet(1))
    inputs = (np.zeros((1, 3, 224, 224), np.float32),)

    assert sum(s.operator == "nn.conv2d" for s in program.steps) == 53
    assert round(operations(program, inputs) / 2e9, 2) == 4.09
    weights = sum(c.size for c in program.constants.values())
    assert weights == 25_557_032 + 2 * 26_560, "parameters, and statistics of batch norms"


def test_operations_and_bytes_are_of_the_sizes_that_are_given() -> None:
    program = program_of(encoder(Sizes(1, hidden=8, heads=2, inner=16)))
    inputs = (drawn(1, 3, 8), np.ones((1, 3), np.int64))

    products = 4 * 3 * 8 * 8 + 2 * 3 * 8 * 16 + 2 * 3 * 3 * 8
    assert operations(program, inputs) == 2 * products
    constants = sum(c.nbytes for c in program.constants.values())
    assert least_bytes(program, inputs) == constants + 2 * 4 * 3 * 8 + 8 * 3


def test_one_encoder_takes_all_lengths() -> None:
    found = networks()
    tasks = [found[f"encoder, 1 layer, s = {s}"].make() for s in (1, 16)]

    assert tasks[0].modules[0] is tasks[1].modules[0]
    assert [t.limit for t in tasks] == ["read", "arithmetic"]
    assert [t.inputs[0].shape for t in tasks] == [(1, 1, 768), (1, 16, 768)]


def test_models_are_exported_with_as_many_nodes_as_they_have_operators() -> None:
    pytest.importorskip("onnx")
    from bench.onnx_writer import onnx_model

    for make in MODELS.values():
        module, inputs = make()
        graph = onnx_model(module).graph
        assert len(graph.input) == len(inputs)
        assert len(graph.node) >= len(program_of(module).steps)


def test_the_export_of_a_reshape_keeps_one_symbol_and_refuses_two() -> None:
    pytest.importorskip("onnx")
    from bench.onnx_writer import onnx_model
    from bench.program import NotRunnable

    n, m = ir.symbol("n"), ir.symbol("m")

    def reshaped(*extents: Dim) -> IRModule:
        x = ir.Var("x", ir.tensor((n, m, 6), "float32"))
        bb = ir.BlockBuilder()
        with bb.function("main", [x]):
            with bb.dataflow():
                out = bb.emit_output(ir.call("reshape", x, ir.shape(extents)))
            bb.emit_func_output(out)
        return bb.get()

    (shape,) = onnx_model(reshaped(n, 2, m, 3)).graph.initializer
    assert np.frombuffer(shape.raw_data, np.int64).tolist() == [0, 2, -1, 3]
    with pytest.raises(NotRunnable, match="needs one extent that is left"):
        onnx_model(reshaped(m, n, 6))
