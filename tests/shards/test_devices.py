"""The program of one device: what it is given, and what all devices compute together."""

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from examples.tensor_parallel import SMALL, off, plan_of, values_for
from relax_egraph.errors import RelaxEgraphError
from relax_egraph.shards import device_program, run_in_threads, sharded, simulated_seconds
from relax_egraph.shards.run import Meeting

Array = np.ndarray[Any, Any]
ENCODER, DECODER = SMALL


@pytest.mark.parametrize("parts", [2, 4])
@pytest.mark.parametrize("layer", SMALL, ids=lambda layer: layer.name)
def test_devices_compute_what_one_computes(layer: Any, parts: int) -> None:
    assert off(layer, parts) < 1e-6


def test_a_device_has_a_part_of_each_matrix_and_of_each_cache() -> None:
    values = values_for(DECODER, past=9)
    program = device_program(plan_of(DECODER, 4))

    given = program.arguments(3, values)

    whole = [values[name] for name in program.whole]
    assert program.whole == ("x", "cos", "sin", "norm", "last_norm")
    assert all(a is b for a, b in zip(given, whole, strict=False))
    assert {cut.name: cut.axis for cut in program.cuts} == {
        **dict.fromkeys(("query_part", "key_part", "value_part", "gate_part", "up_part"), 1),
        **dict.fromkeys(("keys_part", "values_part"), 1),
        **dict.fromkeys(("output_part", "down_part"), 0),
    }
    for cut, part in zip(program.cuts, given[len(whole) :], strict=True):
        np.testing.assert_array_equal(part, np.split(values[_name(cut)], 4, cut.axis)[3])


def _name(cut: Any) -> str:
    return cut.of.name


def test_the_program_of_a_device_has_no_axis_of_parts() -> None:
    program = device_program(plan_of(DECODER, 2))

    text = str(program.module.script())

    assert "R.dist" not in text
    assert text.count('"dist.all_reduce"') == 2
    assert 'keys_part: R.Tensor((1, 2, "past", 8), "float32")' in text


PRODUCT = """
@R.function
def main(x: R.Tensor((8, 16), "float32"), w: R.Tensor((16, 4), "float32")):
    with R.dataflow():
        out = R.nn.relu(R.matmul(x, w))
        R.output(out)
    return out
"""


def _product(without: tuple[str, ...] = ()) -> tuple[Any, Mapping[str, Array]]:
    random = np.random.default_rng(0)
    values = {n: random.standard_normal(s, np.float32) for n, s in (("x", (8, 16)), ("w", (16, 4)))}
    fast = rx.Link(bandwidth=1e12, latency=0.0)
    return sharded(rx.parse(PRODUCT), parts=2, link=fast, weights=["w"], without=without), values


def test_a_device_cuts_for_itself_what_all_have() -> None:
    """A sum over parts takes columns of x, of which every device has all."""
    plan, values = _product(("matmul-by-columns", "matmul-by-rows", "all-gather-of-shards"))
    program = device_program(plan)

    (out,) = run_in_threads(program, values)

    assert '"dist.shard"' in str(program.module.script())
    np.testing.assert_allclose(out, np.maximum(values["x"] @ values["w"], 0), atol=1e-5)


def test_the_program_of_a_device_is_priced_with_its_collectives() -> None:
    program = device_program(plan_of(ENCODER, 2))

    near, far = (simulated_seconds(program, rx.Link(1e10, s)) for s in (0.0, 1.0))

    assert far - near == pytest.approx(4.0)  # two sums of two steps each


def test_all_devices_stop_where_one_fails() -> None:
    program = device_program(plan_of(ENCODER, 2))
    values = values_for(ENCODER, past=1)
    values["x"] = values["x"].astype(np.float64)

    with pytest.raises(RelaxEgraphError):
        run_in_threads(program, values)


def test_a_meeting_is_over_where_a_device_has_left() -> None:
    meeting = Meeting(2)
    meeting.abandon()

    with pytest.raises(threading.BrokenBarrierError):
        meeting.packed(0)["dist.all_reduce"](np.zeros(2))
