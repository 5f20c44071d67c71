"""The application, asked without a network: addresses, statuses, limits, counts."""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relax_egraph as rx
from relax_egraph.errors import RunError
from relax_egraph.inference.rows import Arrays
from relax_egraph.inference.tensor import Tensor
from tests.support.served import (
    NO_HEADERS,
    FakeModel,
    Headers,
    Reply,
    ask,
    doubled,
    infer_body,
    rows,
)

pytest.importorskip("starlette", reason="needs the extra [serve]")
pytest.importorskip("prometheus_client", reason="needs the extra [serve]")

from relax_egraph.server.app import application
from relax_egraph.server.limits import Limits
from relax_egraph.server.server import Server

INFER = "/v2/models/fake/infer"
SIMPLE = {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}


def app_of(model: FakeModel | None = None, **limits: Any) -> Any:
    return application(Server(model or FakeModel(), Limits(**limits), {}))


def asked(
    path: str,
    body: bytes | Sequence[bytes] | None = None,
    headers: Headers = NO_HEADERS,
    *,
    model: FakeModel | None = None,
    method: str = "",
    **limits: Any,
) -> Reply:
    return asyncio.run(ask(app_of(model, **limits), path, body, headers, method))


def infer(**request: Any) -> Reply:
    return asked(INFER, json.dumps(request).encode())


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (
            "/v2",
            {
                "name": "relax-egraph",
                "version": rx.__version__,
                "extensions": ["binary_tensor_data"],
            },
        ),
        ("/v2/health/live", {"live": True}),
        ("/v2/health/ready", {"ready": True}),
        ("/v2/models/fake/ready", {"name": "fake", "ready": True}),
        ("/v2/models/fake/versions/1/ready", {"name": "fake", "ready": True}),
        (
            "/v2/models/fake",
            {
                "name": "fake",
                "versions": ["1"],
                "platform": "relax-egraph",
                "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}],
                "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 2]}],
            },
        ),
    ],
)
def test_what_is_told_of_the_server_and_its_model(path: str, content: Any) -> None:
    reply = asked(path)

    assert (reply.status, reply.json()) == (200, content)
    assert reply.headers["content-type"] == "application/json"


@pytest.mark.parametrize("path", [INFER, "/v2/models/fake/versions/1/infer"])
def test_a_request_in_json_is_answered_in_json(path: str) -> None:
    body = json.dumps({"id": "a", "inputs": [SIMPLE], "parameters": {"other": 1}}).encode()

    reply = asked(path, [body[:9], body[9:]])

    assert reply.status == 200
    assert reply.json() == {
        "model_name": "fake",
        "model_version": "1",
        "id": "a",
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 2], "data": [2.0, 4.0]}],
    }


def test_a_request_in_bytes_is_answered_in_bytes() -> None:
    entry = {**SIMPLE, "parameters": {"binary_data_size": 8}}
    del entry["data"]
    head = json.dumps(
        {"inputs": [entry], "outputs": [{"name": "y", "parameters": {"binary_data": True}}]}
    )
    data = np.array([1, 2], "<f4").tobytes()

    reply = asked(INFER, head.encode() + data, {"Inference-Header-Content-Length": str(len(head))})

    length = int(reply.headers["inference-header-content-length"])
    assert json.loads(reply.body[:length])["outputs"] == [
        {"name": "y", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}}
    ]
    assert np.frombuffer(reply.body[length:], "<f4").tolist() == [2, 4]
    assert reply.headers["content-type"] == "application/octet-stream"


def test_outputs_that_are_not_finite_are_texts() -> None:
    reply = infer(inputs=[{**SIMPLE, "data": ["NaN", "-Infinity"]}])

    assert reply.json()["outputs"][0]["data"] == ["NaN", "-Infinity"]


REFUSED = {
    b"": "the request is no JSON: Expecting value: line 1 column 1 (char 0)",
    b"\xff\xfe\xfd": "the request is no JSON: truncated data at byte 2",
    b"[" * 100_000: "the JSON of the request has too many lists within lists",
    b"[]": 'the request needs to be an object with "inputs"',
    b"{}": "the request needs 'inputs': a list",
    b'{"inputs": [1]}': "the request needs 'inputs': a list of objects",
    b'{"inputs": []}': "input 'x' is missing; model 'fake' needs x",
    b'{"inputs": [], "id": 1}': "the request needs 'id': a text",
}


@pytest.mark.parametrize("body", REFUSED)
def test_a_body_that_is_no_request_is_refused_with_a_sentence(body: bytes) -> None:
    reply = asked(INFER, body)

    assert (reply.status, reply.sentence) == (400, REFUSED[body])


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"name": "X"}, "model 'fake' has no input 'X'; it has x"),
        ({"name": 1}, "an input needs 'name': a text"),
        ({"datatype": "FP64"}, "input 'x' has datatype FP64; model 'fake' takes FP32"),
        ({"datatype": "BYTES"}, "input 'x' has datatype 'BYTES', needs FP32"),
        ({"shape": [1, 3]}, "input 'x' has shape [1, 3]; model 'fake' takes [n, 2]"),
        ({"shape": [2]}, "input 'x' has shape [2]; model 'fake' takes [n, 2]"),
        (
            {"shape": [-1, 2]},
            "input 'x': shape needs to be a list of integers from 0 to 2147483647",
        ),
        ({"shape": [2, 2]}, "input 'x': data has 2 elements; shape [2, 2] needs 4 elements"),
        ({"data": None}, "input 'x' needs 'data': a list"),
        ({"data": ["a", 1]}, "input 'x': data has 'a', needs numbers of FP32"),
        ({"parameters": []}, "input 'x' needs 'parameters': an object"),
        (
            {"parameters": {"binary_data_size": 8}},
            "input 'x' has data, and binary_data_size: needs one of them",
        ),
        (
            {"parameters": {"binary_data_size": "8"}},
            "input 'x': binary_data_size needs to be a number of bytes",
        ),
    ],
)
def test_an_input_that_does_not_fit_is_refused_with_a_sentence(
    changed: dict[str, Any], sentence: str
) -> None:
    reply = infer(inputs=[{**SIMPLE, **changed}])

    assert (reply.status, reply.sentence) == (400, sentence)


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        ({"inputs": [SIMPLE, SIMPLE]}, "input 'x' is there twice"),
        (
            {"inputs": [SIMPLE], "outputs": [{"name": "z"}]},
            "model 'fake' has no output 'z'; it has y",
        ),
        (
            {"inputs": [SIMPLE], "parameters": {"binary_data_output": 1}},
            "the request needs 'binary_data_output': true or false",
        ),
    ],
)
def test_a_request_that_does_not_fit_is_refused(request_: Any, sentence: str) -> None:
    reply = infer(**request_)

    assert (reply.status, reply.sentence) == (400, sentence)


@pytest.mark.parametrize(
    ("length", "sentence"),
    [
        ("x", "Inference-Header-Content-Length needs to be a number of bytes"),
        ("99", "Inference-Header-Content-Length is 99; the body has 14 bytes"),
        ("13", "the request is no JSON: Expecting ',' delimiter: line 1 column 14 (char 13)"),
    ],
)
def test_a_length_of_the_json_that_is_wrong_is_refused(length: str, sentence: str) -> None:
    reply = asked(INFER, b'{"inputs": []}', {"Inference-Header-Content-Length": length})

    assert (reply.status, reply.sentence) == (400, sentence)


def test_bytes_behind_the_inputs_are_refused() -> None:
    body = infer_body(x=rows(1))

    reply = asked(INFER, body + b"123", {"Inference-Header-Content-Length": str(len(body))})

    said = "behind the inputs there are 3 bytes that belong to none"
    assert (reply.status, reply.sentence) == (400, said)


def test_two_sizes_of_a_symbol_are_refused() -> None:
    inputs = [Tensor(name, "float32", ("n", 2)) for name in ("x", "z")]

    reply = asked(INFER, infer_body(x=rows(1), z=rows(1, 2)), model=FakeModel(inputs=inputs))

    said = "n is 1 in input 'x' and 2 in input 'z'; needs to be the same"
    assert (reply.status, reply.sentence) == (400, said)


@pytest.mark.parametrize(
    ("path", "method", "status", "sentence"),
    [
        ("/", "GET", 404, "there is nothing at '/'; addresses begin with /v2/models"),
        ("/v2/models/x", "GET", 404, "there is no model 'x'; there is 'fake'"),
        ("/v2/models/x/infer", "POST", 404, "there is no model 'x'; there is 'fake'"),
        ("/v2/models/fake/versions/2", "GET", 404, "model 'fake' has no version '2'; it has '1'"),
        (INFER, "GET", 405, "'/v2/models/fake/infer' does not take 'GET'"),
        ("/v2", "POST", 405, "'/v2' does not take 'POST'"),
    ],
)
def test_what_is_not_there_is_said(path: str, method: str, status: int, sentence: str) -> None:
    reply = asked(path, b"{}", method=method)

    assert (reply.status, reply.sentence) == (status, sentence)


def test_what_the_model_refuses_is_said() -> None:
    def refuses(_: Arrays) -> Arrays:
        raise RunError("x has no such rows")

    reply = asked(INFER, infer_body(x=rows(1)), model=FakeModel(refuses))

    assert (reply.status, reply.sentence) == (400, "x has no such rows")


def test_a_fault_of_the_model_is_no_fault_of_the_request() -> None:
    def fails(_: Arrays) -> Arrays:
        raise KeyError("y")

    reply = asked(INFER, infer_body(x=rows(1)), model=FakeModel(fails, batch=None))

    assert (reply.status, reply.sentence) == (500, "the server failed; its log has why")


@pytest.mark.parametrize("parts", [1, 3, 60])
def test_a_body_that_is_too_large_is_not_kept(parts: int) -> None:
    reply = asked(INFER, [b" " * 40] * parts, max_body=39)

    said = "the body has more than 39 bytes, the limit of this server"
    assert (reply.status, reply.sentence, reply.headers["connection"]) == (413, said, "close")


def test_a_body_that_is_compressed_is_refused() -> None:
    reply = asked(INFER, b"", {"Content-Encoding": "gzip"})

    said = "the body is encoded by 'gzip'; needs to be sent as it is"
    assert (reply.status, reply.sentence) == (415, said)


def slow(inputs: Arrays) -> Arrays:
    time.sleep(0.1)
    return doubled(inputs)


def test_a_request_that_runs_too_long_is_given_up() -> None:
    reply = asked(INFER, infer_body(x=rows(1)), model=FakeModel(slow, batch=None), timeout=0.01)

    said = "no answer in 0.01 s, the limit of this server"
    assert (reply.status, reply.sentence) == (504, said)


def test_a_request_that_is_sent_too_slowly_is_given_up() -> None:
    reply = asyncio.run(ask(app_of(timeout=0.01), INFER, [b"{", b"}"], endless=True))

    assert (reply.status, reply.sentence) == (408, "the request was not sent in 0.01 s")


def test_more_requests_than_the_limit_are_refused() -> None:
    async def crowd() -> list[Reply]:
        app = app_of(FakeModel(slow, batch=None), max_queue=2)
        body = infer_body(x=rows(1))
        replies = await asyncio.gather(*(ask(app, INFER, body) for _ in range(5)))
        return [*replies, await ask(app, INFER, body)]

    *replies, later = asyncio.run(crowd())

    assert sorted(r.status for r in replies) == [200, 200, 503, 503, 503]
    refused = next(r for r in replies if r.status == 503)
    assert refused.sentence == "2 requests are here, as many as the limit; try again"
    assert refused.headers["retry-after"] == "1"
    assert later.status == 200


def test_requests_of_the_same_time_run_as_one_and_get_their_own_answers() -> None:
    model = FakeModel()

    async def crowd() -> list[Reply]:
        app = app_of(model)
        model.calls.clear()
        return await asyncio.gather(*(ask(app, INFER, infer_body(x=rows(i))) for i in range(6)))

    replies = asyncio.run(crowd())

    assert [r.json()["outputs"][0]["data"] for r in replies] == [[2.0 * i] * 2 for i in range(6)]
    assert model.calls == [6]


def test_a_batch_ends_at_the_last_bound_of_the_model_or_at_the_limit() -> None:
    async def crowd(model: FakeModel, **limits: Any) -> list[int]:
        app = app_of(model, **limits)
        model.calls.clear()
        await asyncio.gather(*(ask(app, INFER, infer_body(x=rows(1))) for _ in range(12)))
        return model.calls

    assert asyncio.run(crowd(FakeModel())) == [8, 4]
    assert asyncio.run(crowd(FakeModel(), max_batch=5)) == [5, 5, 2]
    assert asyncio.run(crowd(FakeModel(bounds=()))) == [12]


def test_rows_that_depend_on_each_other_are_not_joined() -> None:
    model = FakeModel(lambda inputs: {"y": np.cumsum(inputs["x"], 0)})

    async def crowd() -> list[Reply]:
        app = app_of(model)
        return await asyncio.gather(*(ask(app, INFER, infer_body(x=rows(i))) for i in range(3)))

    replies = asyncio.run(crowd())

    assert [r.json()["outputs"][0]["data"] for r in replies] == [[float(i)] * 2 for i in range(3)]


def test_counts_are_told_for_prometheus() -> None:
    async def some() -> Reply:
        app = app_of()
        for body in (infer_body(x=rows(1, 2, 3)), infer_body(x=rows(1)), b"{"):
            await ask(app, INFER, body)
        return await ask(app, "/metrics")

    reply = asyncio.run(some())

    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    counts = dict(
        line.rsplit(" ", 1) for line in reply.body.decode().splitlines() if line[0] != "#"
    )
    expected = {
        'relax_egraph_requests_total{code="200",model="fake"}': "2.0",
        'relax_egraph_requests_total{code="400",model="fake"}': "1.0",
        'relax_egraph_refused_total{model="fake"}': "0.0",
        'relax_egraph_batch_rows_sum{model="fake"}': "4.0",
        'relax_egraph_batch_rows_bucket{le="1.0",model="fake"}': "1.0",
        'relax_egraph_batch_rows_bucket{le="4.0",model="fake"}': "2.0",
        'relax_egraph_request_seconds_count{model="fake"}': "3.0",
        'relax_egraph_batch_seconds_count{model="fake"}': "2.0",
        'relax_egraph_waiting{model="fake"}': "0.0",
    }
    assert {name: counts.get(name) for name in expected} == expected


GOOD = infer_body(x=rows(1, 2))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
MEMBERS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.just("x") | JSON,
        "datatype": st.sampled_from(["FP32", "INT8", "BYTES"]) | JSON,
        "shape": st.lists(st.integers(-1, 3) | st.integers(), max_size=3) | JSON,
        "data": st.lists(st.integers() | st.floats(), max_size=4) | JSON,
        "parameters": st.fixed_dictionaries({"binary_data_size": st.integers(-1, 9)}) | JSON,
    },
)
REQUESTS = st.fixed_dictionaries(
    {"inputs": st.lists(MEMBERS, max_size=2) | JSON},
    optional={"id": JSON, "parameters": JSON, "outputs": st.lists(MEMBERS, max_size=2) | JSON},
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good request with a stretch replaced."""
    start, end = sorted(draw(st.tuples(*[st.integers(0, len(GOOD))] * 2)))
    return GOOD[:start] + draw(st.binary(max_size=6)) + GOOD[end:]


APP = app_of()


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@settings(max_examples=300)
@given(
    st.binary() | damaged() | REQUESTS.map(lambda r: json.dumps(r).encode()),
    st.none() | st.integers(-1, 80).map(str) | st.text(st.characters(max_codepoint=255)),
    st.lists(st.integers(0, 80), max_size=3),
)
def test_any_body_is_answered_or_refused_with_a_sentence(
    loop: asyncio.Runner, body: bytes, length: str | None, cuts: list[int]
) -> None:
    headers = {} if length is None else {"Inference-Header-Content-Length": length}
    parts = [body[a:b] for a, b in pairwise([0, *sorted(cuts), len(body) + 80])]

    reply = loop.run(asyncio.wait_for(ask(APP, INFER, parts, headers), 5))

    assert reply.status in (200, 400)
    assert reply.status == 200 or len(reply.sentence) > 10


@settings(max_examples=100)
@given(st.text(max_size=30), st.sampled_from(["GET", "POST", "PUT", "HEAD"]))
def test_any_address_is_answered_or_refused(loop: asyncio.Runner, path: str, method: str) -> None:
    reply = loop.run(ask(APP, f"/v2/models/{path}", b"{}", method=method))

    assert reply.status in (200, 307, 400, 404, 405)
