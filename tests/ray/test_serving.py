"""A saved model behind Ray Serve."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

from relax_egraph.errors import ExecutableError, UnknownFunction
from relax_egraph.ray.cluster import LOCAL, connected
from tests.support.served import free_port, grpc_method, infer_body, saved_doubled

pytest.importorskip("ray", reason="needs the extra [ray]")
pytest.importorskip("ray.serve", reason="needs the extra [ray]")

import grpc

from relax_egraph.ray.serving import served
from relax_egraph.serve import Limits, deployment
from relax_egraph.server.messages import MESSAGES

pytestmark = pytest.mark.filterwarnings("ignore")  # those of Ray


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved_doubled(tmp_path_factory.mktemp("serving"))


@pytest.fixture(scope="module")
def ports(saved: Path) -> Iterator[tuple[int, int]]:
    port, grpc_port = free_port(), free_port()
    app = deployment(saved, num_replicas=2, limits=Limits(max_body=1000))
    with connected(LOCAL, num_cpus=2), served(app, "127.0.0.1", port, grpc_port) as ended:
        yield port, grpc_port
        os.kill(os.getpid(), signal.SIGTERM)
        assert ended.wait(5)


@pytest.fixture
def address(ports: tuple[int, int]) -> str:
    return f"http://127.0.0.1:{ports[0]}"


def answer(url: str, body: bytes | None = None) -> tuple[int, bytes]:
    try:
        with urlopen(Request(url, body), timeout=20) as reply:
            return reply.status, reply.read()
    except HTTPError as error:
        with error:
            return error.code, error.read()


def test_requests_are_answered_by_replicas_which_tell_their_counts_together(address: str) -> None:
    infer = f"{address}/v2/models/doubled/infer"

    async def crowd() -> list[tuple[int, bytes]]:
        bodies = [infer_body(x=np.full((1, 2), n, "float32")) for n in range(40)]
        return await asyncio.gather(*(asyncio.to_thread(answer, infer, b) for b in bodies))

    answers = asyncio.run(crowd())
    _, counts = answer(f"{address}/metrics")

    assert [status for status, _ in answers] == [200] * 40
    assert all(b'"data":[%.1f,%.1f]' % (2 * n, 2 * n) in a for n, (_, a) in enumerate(answers))
    answered = [
        line
        for line in counts.decode().splitlines()
        if line.startswith('relax_egraph_requests_total{code="200",model="doubled",replica="')
    ]
    assert len(answered) == 2
    assert sum(float(line.split()[-1]) for line in answered) == 40


def test_what_is_wrong_is_said_with_its_status(address: str) -> None:
    infer = f"{address}/v2/models/doubled/infer"

    assert answer(infer, b"{")[0] == 400
    assert answer(infer, b" " * 1001) == (
        413,
        b'{"error":"the body has more than 1000 bytes, the limit of this server"}',
    )
    assert answer(f"{address}/v2/models/other") == (
        404,
        b"{\"error\":\"there is no model 'other'; there is 'doubled'\"}",
    )


def test_grpc_is_answered_by_replicas(ports: tuple[int, int]) -> None:
    entry = {"name": "x", "datatype": "FP32", "shape": [1, 2]}
    raw = np.array([1, 2], "<f4").tobytes()

    def ask(**content: Any) -> Any:
        with grpc.insecure_channel(f"127.0.0.1:{ports[1]}") as channel:
            call = grpc_method(channel, "ModelInfer")
            return call(MESSAGES["ModelInferRequest"](**content), timeout=20)

    answer = ask(model_name="doubled", inputs=[entry], raw_input_contents=[raw])

    assert list(answer.raw_output_contents) == [np.array([2, 4], "<f4").tobytes()]
    with pytest.raises(grpc.RpcError) as raised:
        ask(model_name="doubled")
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert raised.value.details() == "input 'x' is missing; model 'doubled' needs x"


def test_a_file_that_cannot_be_served_is_refused_at_the_call(saved: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.rxe"
    other.write_bytes(b"other")

    with pytest.raises(ExecutableError):
        deployment(other)
    with pytest.raises(UnknownFunction):
        deployment(saved, "other")
    with pytest.raises(ValueError, match="num_replicas is 0, needs an integer, 1 or more"):
        deployment(saved, num_replicas=0)
