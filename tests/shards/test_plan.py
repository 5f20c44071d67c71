"""The plans that extraction finds, and their prices."""

from functools import cache

import numpy as np
import pytest

import relax_egraph as rx
from bench import llama, transformer
from examples.megatron.layers import Layer, Widths, decoder, encoder
from examples.tensor_parallel import LINK, by_hand, plan_of
from relax_egraph.errors import ExtractionError, IllFormed
from relax_egraph.shards import ShardedPlan, sharded, stated
from relax_egraph.shards.report import Sent

ENCODER = encoder(Widths(hidden=512, heads=8, groups=8, inner=2048), batch=4, length=64)
DECODER = decoder(Widths(hidden=1024, heads=16, groups=4, inner=2816), past=512)


@cache
def found(name: str, parts: int) -> ShardedPlan:
    return plan_of(ENCODER if name == "encoder" else DECODER, parts)


@pytest.mark.parametrize("parts", [2, 4])
def test_an_encoder_is_cut_as_megatron_cuts_it(parts: int) -> None:
    plan = found("encoder", parts)

    columns = ("query", "key", "value", "up")
    biases = {f"{name}_bias": (0,) for name in columns}
    assert plan.cuts == {
        **dict.fromkeys(columns, (1,)),
        **biases,
        **dict.fromkeys(("output", "down"), (0,)),
    }
    assert plan.collectives == (Sent("dist.all_reduce", (4, 64, 512)),) * 2
    assert plan.in_parts == {}


@pytest.mark.parametrize("parts", [2, 4])
def test_a_decoder_is_cut_as_megatron_cuts_it_and_its_caches_by_heads(parts: int) -> None:
    plan = found("decoder", parts)

    assert plan.cuts == {
        **dict.fromkeys(("query", "key", "value", "gate", "up", "keys", "values"), (1,)),
        **dict.fromkeys(("output", "down"), (0,)),
    }
    assert plan.collectives == (Sent("dist.all_reduce", (1, 1, 1024)),) * 2
    assert plan.caches == {"keys": 1, "values": 1}
    assert plan.in_parts == {1: 1, 2: 1}


@pytest.mark.parametrize("parts", [2, 4])
@pytest.mark.parametrize("layer", [ENCODER, DECODER], ids=lambda layer: layer.name)
def test_the_plan_costs_what_the_plan_by_hand_does_and_nothing_costs_less(
    layer: Layer, parts: int
) -> None:
    plan = found(layer.name, parts)

    assert plan.seconds == pytest.approx(by_hand(layer, parts), rel=1e-4)
    assert plan.status == "optimal"
    assert plan.bound == pytest.approx(plan.seconds)
    assert plan.seconds < plan.alone


def test_with_fewer_equations_plans_are_dearer() -> None:
    columns = plan_of(ENCODER, 2, ("matmul-by-sums", "matmul-of-weight-by-sums"))

    assert {sent.op for sent in columns.collectives} == {"dist.all_gather"}
    assert columns.seconds > found("encoder", 2).seconds


def test_exporters_layers_are_cut_alike() -> None:
    """Norms, softmax and gelu are written out, weights are transposed, and sizes are symbols."""
    module = transformer.encoder(transformer.Sizes(1, hidden=256, heads=8, inner=1024))

    plan = sharded(module, parts=2, link=LINK, hints={"batch": 4, "length": 64})

    assert [sent.op for sent in plan.collectives] == ["dist.all_reduce"] * 2


def test_rotary_embeddings_by_slices_are_cut_alike() -> None:
    widths = llama.Widths(hidden=256, heads=8, groups=4, inner=512)

    plan = sharded(
        llama.decode_step(widths),
        parts=4,
        link=LINK,
        weights=["keys", "values"],
        hints={"past": 64},
    )

    assert [sent.op for sent in plan.collectives] == ["dist.all_reduce"] * 2
    assert plan.cuts == {"keys": (1,), "values": (1,)}


PRODUCT = """
@R.function
def main(x: R.Tensor((64, 512), "float32"), w: R.Tensor((512, 512), "float32")):
    with R.dataflow():
        out = R.matmul(x, w)
        R.output(out)
    return out
"""


def test_what_every_device_has_whole_is_cut_where_that_moves_least() -> None:
    """Without weights, it is rows of x that each device takes for itself, not columns of w."""
    plan = sharded(rx.parse(PRODUCT), parts=2, link=LINK)

    assert plan.cuts == {"x": (0,)}
    assert plan.collectives == (Sent("dist.all_gather", (64, 512)),)


def test_over_a_slow_link_every_device_computes_alone() -> None:
    slow = rx.Link(bandwidth=1e3, latency=1.0)

    plan = sharded(rx.parse(PRODUCT), parts=2, link=slow)

    assert (plan.cuts, plan.collectives) == ({}, ())
    assert plan.seconds == pytest.approx(plan.alone)
    assert plan.speedup == pytest.approx(1)


def test_a_ring_passes_on_a_part_in_each_step() -> None:
    link = rx.Link(bandwidth=100.0, latency=1.0)

    assert link.all_gather(400, 4) == 3 * (1 + 1)
    assert link.all_reduce(400, 4) == 6 * (1 + 1)


def test_a_plan_is_printed_with_what_is_simulated() -> None:
    text = str(sharded(rx.parse(PRODUCT), parts=2, link=LINK))

    first, *rest = text.splitlines()
    assert first.startswith("main on 2 devices, optimal: ")
    assert first.endswith("(simulated)")
    assert rest == ["  in parts: x along axis 0", "  R.dist.all_gather to (64, 512)"]


def test_the_plan_is_one_program_of_tensors_that_computes_the_same() -> None:
    plan = sharded(rx.parse(PRODUCT), parts=2, link=LINK)
    x, w = (
        np.random.default_rng(0).standard_normal(s, np.float32) for s in ((64, 512), (512, 512))
    )

    out = rx.VirtualMachine(rx.build(plan.module))["main"](x, w)

    np.testing.assert_allclose(out, x @ w, rtol=1e-4, atol=1e-4)


def test_a_plan_by_hand_must_do_the_same_to_each_part() -> None:
    module = rx.parse("""
    @R.function
    def main(x: R.Tensor((8, 4), "float32")):
        with R.dataflow():
            parts = R.dist.shard(x, parts=2, axis=0)
            out = R.sum(parts, axis=[0])
            R.output(out)
        return out
    """)

    with pytest.raises(ExtractionError, match="not known to do the same to each part"):
        stated(module, parts=2, link=LINK)


def test_a_function_with_branches_has_no_plan() -> None:
    module = rx.parse("""
    @R.function
    def main(x: R.Tensor((8,), "float32"), more: R.Tensor((), "bool")) -> R.Tensor((8,), "float32"):
        if more:
            y = R.add(x, x)
        else:
            y = x
        return y
    """)

    with pytest.raises(IllFormed, match="'main' is no single dataflow block"):
        sharded(module, parts=2, link=LINK)


def test_a_cache_is_replaced_by_a_result_that_there_is() -> None:
    with pytest.raises(ValueError, match="caches: x is to be result 1 of 1"):
        sharded(rx.parse(PRODUCT), parts=2, link=LINK, caches={"x": 1})
