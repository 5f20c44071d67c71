"""Inference requests and answers over gRPC: messages, checked against a model."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from relax_egraph.inference.rows import Array, Arrays
from relax_egraph.server.checks import Inputs, check_output
from relax_egraph.server.messages import MESSAGES, DecodeError, Message
from relax_egraph.server.model import Model
from relax_egraph.server.refusal import bad
from relax_egraph.server.requests import Request
from relax_egraph.server.responses import VERSION
from relax_egraph.server.tensors import DATATYPES, from_bytes, from_json, to_bytes

_CONTENTS = {
    "BOOL": "bool_contents",
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    "INT64": "int64_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
}
"""The field with the elements of each datatype; 16-bit floats have none, and are raw bytes."""


def message_of(name: str, data: bytes) -> Any:
    """The message `name` that `data` is; raises `Refused` if it is none."""
    try:
        return MESSAGES[name].FromString(data)
    except DecodeError:
        raise bad(f"the request is no message {name} of the protocol") from None


def request_of_message(message: Any, model: Model) -> Request:
    """Read a ``ModelInferRequest``; raises `Refused` with a sentence."""
    raw: Sequence[bytes] = message.raw_input_contents
    if raw and len(raw) != len(message.inputs):
        counts = f"raw_input_contents has {len(raw)} elements for {len(message.inputs)} inputs"
        raise bad(f"{counts}: needs one for each, or none")
    inputs = Inputs(model)
    for number, entry in enumerate(message.inputs):
        tensor = inputs.tensor(entry.name)
        shape, where = tuple(entry.shape), f"input {entry.name!r}"
        inputs.check_type(tensor, entry.datatype, shape)
        filled = [field.name for field, _ in entry.contents.ListFields()]
        if raw and filled:
            raise bad(f"{where} has contents, and raw_input_contents: needs one of them")
        if raw:
            array = from_bytes(memoryview(raw[number]), tensor.dtype, shape, where)
        else:
            array = _typed(entry, filled, tensor.dtype, shape, where)
        inputs.arrays[tensor.name] = array
    outputs = [entry.name for entry in message.outputs]
    for name in outputs:
        check_output(name, model)
    sent = dict.fromkeys(outputs or [tensor.name for tensor in model.outputs], bool(raw))
    return Request(message.id or None, inputs.all(), sent)


def _typed(
    entry: Any, filled: Sequence[str], dtype: str, shape: tuple[int, ...], where: str
) -> Array:
    """The array of an input whose elements are in the field of its datatype."""
    field = _CONTENTS.get(entry.datatype)
    if field is None:
        raise bad(f"{where}: {entry.datatype} has no field of contents: needs raw_input_contents")
    if strays := [name for name in filled if name != field]:
        raise bad(f"{where} has {strays[0]}; {entry.datatype} needs {field}")
    return from_json(list(getattr(entry.contents, field)), dtype, shape, where)


def message_answer(request: Request, outputs: Arrays, model: Model) -> Message:
    """The ``ModelInferResponse``: raw bytes if the inputs were, or if a datatype needs them."""
    sent = {name: outputs[name] for name in request.outputs}
    datatypes = {name: DATATYPES[array.dtype.name] for name, array in sent.items()}
    raw = any(request.outputs.values()) or not _CONTENTS.keys() >= set(datatypes.values())
    answer: Any = MESSAGES["ModelInferResponse"](
        model_name=model.name, model_version=VERSION, id=request.id or ""
    )
    for name, array in sent.items():
        entry = answer.outputs.add(name=name, datatype=datatypes[name], shape=array.shape)
        if raw:
            answer.raw_output_contents.append(to_bytes(array))
        else:
            getattr(entry.contents, _CONTENTS[datatypes[name]]).extend(np.ravel(array).tolist())
    return answer
