"""The messages of the V2 protocol over gRPC, made of a table of their fields.

The numbers and types are those of ``open_inference_grpc.proto``, of the Open Inference Protocol.
Parameters are left out: none has a meaning here.  The messages are in a pool of their own, so that
a process may import another package that has them.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

Message: TypeAlias = message.Message
DecodeError = message.DecodeError

PACKAGE = "inference"
SERVICE = f"{PACKAGE}.GRPCInferenceService"

_NAMED = "1 string name", "2 string version"
_TENSOR = "1 string name", "2 string datatype", "3 int64* shape"
_CONTENTS = *_TENSOR, "5 InferTensorContents contents"

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "ServerLiveRequest": (),
    "ServerLiveResponse": ("1 bool live",),
    "ServerReadyRequest": (),
    "ServerReadyResponse": ("1 bool ready",),
    "ModelReadyRequest": _NAMED,
    "ModelReadyResponse": ("1 bool ready",),
    "ServerMetadataRequest": (),
    "ServerMetadataResponse": (*_NAMED, "3 string* extensions"),
    "ModelMetadataRequest": _NAMED,
    "ModelMetadataResponse": (
        *("1 string name", "2 string* versions", "3 string platform"),
        *("4 TensorMetadata* inputs", "5 TensorMetadata* outputs"),
    ),
    "TensorMetadata": _TENSOR,
    "ModelInferRequest": (
        *("1 string model_name", "2 string model_version", "3 string id"),
        *("5 InferInputTensor* inputs", "6 InferRequestedOutputTensor* outputs"),
        "7 bytes* raw_input_contents",
    ),
    "InferInputTensor": _CONTENTS,
    "InferRequestedOutputTensor": ("1 string name",),
    "ModelInferResponse": (
        *("1 string model_name", "2 string model_version", "3 string id"),
        *("5 InferOutputTensor* outputs", "6 bytes* raw_output_contents"),
    ),
    "InferOutputTensor": _CONTENTS,
    "InferTensorContents": (
        *("1 bool* bool_contents", "2 int32* int_contents", "3 int64* int64_contents"),
        *("4 uint32* uint_contents", "5 uint64* uint64_contents"),
        *("6 float* fp32_contents", "7 double* fp64_contents", "8 bytes* bytes_contents"),
    ),
}

_FIELD = descriptor_pb2.FieldDescriptorProto


def _described() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="open_inference_grpc.proto", package=PACKAGE, syntax="proto3"
    )
    for name, fields in _FIELDS.items():
        made = file.message_type.add(name=name)
        for field in fields:
            number, kind, field_name = field.split()
            of = kind.rstrip("*")
            repeated = _FIELD.LABEL_REPEATED if of != kind else _FIELD.LABEL_OPTIONAL
            added = made.field.add(name=field_name, number=int(number), label=repeated)
            if of in _FIELDS:
                added.type, added.type_name = _FIELD.TYPE_MESSAGE, f".{PACKAGE}.{of}"
            else:
                added.type = _FIELD.Type.Value(f"TYPE_{of.upper()}")
    return file


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_described())

MESSAGES: Mapping[str, Any] = {
    name: message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{PACKAGE}.{name}"))
    for name in _FIELDS
}
"""The class of each message by name."""
