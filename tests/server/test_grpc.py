"""The protocol over gRPC: messages, checks, statuses, and a server at a port."""

import asyncio
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relax_egraph.errors import RunError
from relax_egraph.inference.rows import Arrays
from relax_egraph.inference.tensor import Tensor
from tests.support.served import FakeModel, free_port, grpc_method

pytest.importorskip("grpc", reason="needs the extra [serve]")
pytest.importorskip("prometheus_client", reason="needs the extra [serve]")

import grpc
import grpc.aio

from relax_egraph.server.grpc_service import METHODS, answer, listening
from relax_egraph.server.limits import Limits
from relax_egraph.server.messages import MESSAGES
from relax_egraph.server.server import Server

SIMPLE = {"name": "x", "datatype": "FP32", "shape": [1, 2], "contents": {"fp32_contents": [1, 2]}}
FEW = {**SIMPLE, "contents": {"fp32_contents": [1]}}
RAW = {"name": "x", "datatype": "FP32", "shape": [1, 2]}
TWO = np.array([[1, 2]], "<f4").tobytes()


def asked(
    method: str, data: bytes, model: FakeModel | None = None, **limits: Any
) -> tuple[Any, tuple[Any, str] | None]:
    server = Server(model or FakeModel(), Limits(**limits), {})
    return asyncio.run(answer(method, server, data))


def infer(model: FakeModel | None = None, **fields: Any) -> tuple[Any, tuple[Any, str] | None]:
    request = MESSAGES["ModelInferRequest"](**{"model_name": "fake", **fields})
    return asked("ModelInfer", request.SerializeToString(), model)


def fields(message: Any) -> dict[str, Any]:
    """What a message has set, by name."""

    def read(value: Any) -> Any:
        if hasattr(value, "ListFields"):
            return fields(value)
        return value if isinstance(value, str | bytes | int | float) else [*map(read, value)]

    return {field.name: read(value) for field, value in message.ListFields()}


def test_bytes_are_those_that_the_protocol_numbers() -> None:
    request = b"\x0a\x04fake\x2a\x19\x0a\x01x\x12\x04FP32\x1a\x02\x01\x02\x2a\x0a\x32\x08" + TWO
    expected = (
        b"\x0a\x04fake\x12\x011\x2a\x19\x0a\x01y\x12\x04FP32\x1a\x02\x01\x02\x2a\x0a\x32\x08"
        + (2 * np.array([1, 2], "<f4")).tobytes()
    )

    message, refusal = asked("ModelInfer", request)

    assert refusal is None
    assert message.SerializeToString() == expected


def test_raw_inputs_have_raw_outputs() -> None:
    message, refusal = infer(id="7", inputs=[RAW], raw_input_contents=[TWO])

    assert refusal is None
    assert fields(message) == {
        "model_name": "fake",
        "model_version": "1",
        "id": "7",
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 2]}],
        "raw_output_contents": [np.array([2, 4], "<f4").tobytes()],
    }


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "uint64", "float64"])
def test_each_dtype_has_its_field(dtype: str) -> None:
    x, y = Tensor("x", dtype, ("n",)), Tensor("y", dtype, ("n",))
    model = FakeModel(lambda inputs: {"y": inputs["x"]}, (x,), (y,))
    datatype, field = {
        "bool": ("BOOL", "bool_contents"),
        "int8": ("INT8", "int_contents"),
        "uint16": ("UINT16", "uint_contents"),
        "int64": ("INT64", "int64_contents"),
        "uint64": ("UINT64", "uint64_contents"),
        "float64": ("FP64", "fp64_contents"),
    }[dtype]
    contents = {field: [1, 0, 1]}

    message, refusal = infer(
        model, inputs=[{"name": "x", "datatype": datatype, "shape": [3], "contents": contents}]
    )

    assert refusal is None
    assert fields(message)["outputs"] == [
        {"name": "y", "datatype": datatype, "shape": [3], "contents": contents}
    ]


@pytest.mark.parametrize(("dtype", "datatype"), [("float16", "FP16"), ("bfloat16", "BF16")])
def test_halves_are_raw(dtype: str, datatype: str) -> None:
    x, y = Tensor("x", dtype, ("n",)), Tensor("y", dtype, ("n",))
    model = FakeModel(lambda inputs: {"y": inputs["x"]}, (x,), (y,))
    data = np.array([1.5, -2], ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype).tobytes()
    entry = {"name": "x", "datatype": datatype, "shape": [2]}

    message, _ = infer(model, inputs=[entry], raw_input_contents=[data])
    _, refusal = infer(model, inputs=[entry])

    assert list(message.raw_output_contents) == [data]
    assert refusal == (
        grpc.StatusCode.INVALID_ARGUMENT,
        f"input 'x': {datatype} has no field of contents: needs raw_input_contents",
    )


@pytest.mark.parametrize(
    ("request_fields", "code", "sentence"),
    [
        ({"model_name": "f"}, "NOT_FOUND", "there is no model 'f'; there is 'fake'"),
        ({"model_version": "2"}, "NOT_FOUND", "model 'fake' has no version '2'; it has '1'"),
        ({}, "INVALID_ARGUMENT", "input 'x' is missing; model 'fake' needs x"),
        ({"inputs": [SIMPLE, SIMPLE]}, "INVALID_ARGUMENT", "input 'x' is there twice"),
        (
            {"inputs": [{**SIMPLE, "datatype": "FP64"}]},
            "INVALID_ARGUMENT",
            "input 'x' has datatype FP64; model 'fake' takes FP32",
        ),
        (
            {"inputs": [{**SIMPLE, "shape": [1, 3]}]},
            "INVALID_ARGUMENT",
            "input 'x' has shape [1, 3]; model 'fake' takes [n, 2]",
        ),
        (
            {"inputs": [{**SIMPLE, "shape": [-1, 2]}]},
            "INVALID_ARGUMENT",
            "input 'x': shape needs to be a list of integers from 0 to 2147483647",
        ),
        (
            {"inputs": [FEW]},
            "INVALID_ARGUMENT",
            "input 'x': data has 1 elements; shape [1, 2] needs 2 elements",
        ),
        (
            {"inputs": [{**SIMPLE, "contents": {"int_contents": [1, 2]}}]},
            "INVALID_ARGUMENT",
            "input 'x' has int_contents; FP32 needs fp32_contents",
        ),
        (
            {"inputs": [SIMPLE], "raw_input_contents": [TWO]},
            "INVALID_ARGUMENT",
            "input 'x' has contents, and raw_input_contents: needs one of them",
        ),
        (
            {"inputs": [RAW], "raw_input_contents": [TWO, TWO]},
            "INVALID_ARGUMENT",
            "raw_input_contents has 2 elements for 1 inputs: needs one for each, or none",
        ),
        (
            {"inputs": [RAW], "raw_input_contents": [TWO[1:]]},
            "INVALID_ARGUMENT",
            "input 'x': 7 bytes; FP32 of shape [1, 2] needs 8",
        ),
        (
            {"inputs": [SIMPLE], "outputs": [{"name": "z"}]},
            "INVALID_ARGUMENT",
            "model 'fake' has no output 'z'; it has y",
        ),
    ],
)
def test_what_is_wrong_is_said(request_fields: dict[str, Any], code: str, sentence: str) -> None:
    message, refusal = infer(**request_fields)

    assert refusal == (grpc.StatusCode[code], sentence)
    assert message.SerializeToString() == b""


def test_what_the_model_refuses_is_said() -> None:
    def refuse(_: Arrays) -> Arrays:
        raise RunError("n is 1, needs 2")

    assert infer(FakeModel(refuse), inputs=[SIMPLE])[1] == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "n is 1, needs 2",
    )


def test_a_request_beyond_the_limit_is_refused() -> None:
    assert asked("ModelInfer", b" " * 1001, max_body=1000)[1] == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "the body has more than 1000 bytes, the limit of this server",
    )


@given(method=st.sampled_from(sorted(METHODS)), data=st.binary(max_size=60))
def test_any_bytes_have_an_answer(method: str, data: bytes) -> None:
    _, refusal = asked(method, data)

    codes = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)
    assert refusal is None or refusal[0] in codes


def test_metadata_and_health_are_answered_at_a_port() -> None:
    port = free_port()

    async def ask_all() -> list[dict[str, Any]]:
        server = Server(FakeModel(), Limits(), {})
        async with (
            listening(server, "127.0.0.1", port),
            grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
        ):

            async def ask(name: str, /, **content: Any) -> dict[str, Any]:
                call = grpc_method(channel, name)
                return fields(await call(MESSAGES[f"{name}Request"](**content)))

            answers = [
                await ask("ServerLive"),
                await ask("ServerReady"),
                await ask("ModelReady", name="fake"),
                await ask("ModelMetadata", name="fake", version="1"),
                await ask("ModelInfer", model_name="fake", inputs=[SIMPLE]),
            ]
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await ask("ModelInfer", model_name="other")
            code, said = raised.value.code().name, raised.value.details()
            return [*answers, {"code": code, "said": said}]

    assert asyncio.run(ask_all()) == [
        {"live": True},
        {"ready": True},
        {"ready": True},
        {
            "name": "fake",
            "versions": ["1"],
            "platform": "relax-egraph",
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}],
            "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 2]}],
        },
        {
            "model_name": "fake",
            "model_version": "1",
            "outputs": [
                {
                    "name": "y",
                    "datatype": "FP32",
                    "shape": [1, 2],
                    "contents": {"fp32_contents": [2, 4]},
                }
            ],
        },
        {"code": "NOT_FOUND", "said": "there is no model 'other'; there is 'fake'"},
    ]
