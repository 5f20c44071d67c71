"""Devices as actors of Ray: their results, over gloo, are those of one machine."""

from collections.abc import Iterator

import numpy as np
import pytest

from examples.tensor_parallel import SMALL, off, plan_of, values_for
from relax_egraph.ray.cluster import LOCAL, connected
from relax_egraph.ray.shards import run_on_actors
from relax_egraph.shards import device_program

ray = pytest.importorskip("ray", reason="needs the extra [ray]")
pytest.importorskip("torch", reason="collectives over gloo need torch")

ENCODER, DECODER = SMALL


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with connected(LOCAL, num_cpus=1):
        yield


def test_two_actors_compute_an_encoder() -> None:
    assert off(ENCODER, 2, on_actors=True) < 1e-6


def test_four_actors_compute_a_decoder_with_its_caches_in_parts() -> None:
    assert off(DECODER, 4, on_actors=True) < 1e-6


def test_an_actor_that_fails_ends_the_run() -> None:
    values = values_for(ENCODER, past=1)
    values["x"] = values["x"].astype(np.float64)

    with pytest.raises(ray.exceptions.RayTaskError, match="float64"):
        run_on_actors(device_program(plan_of(ENCODER, 2)), values)
