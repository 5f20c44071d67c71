"""The cases of ONNX's public suite, with their inputs and expected outputs."""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
LIGHT = "real"
"""The kind of nine networks without inputs, which get numbers from 0 to 1."""

PLAIN = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float", "double"),
)
"""ONNX's names of the dtypes of core cases."""


def cases(words: Sequence[str] = ()) -> list[Any]:
    """The cases whose names have any of `words`, or all."""
    from onnx.backend.test.case.model import collect_testcases
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        suite = [case for kind in KINDS for case in load_model_tests(kind=kind)]
        suite += [case for case in collect_testcases() if case.kind == LIGHT]
    return [c for c in suite if not words or any(word in c.name for word in words)]


def model_of(case: Any) -> Any:
    """The model of a case."""
    import onnx

    if case.model is not None:
        return case.model
    return onnx.load(_light(case) if case.kind == LIGHT else Path(case.model_dir) / "model.onnx")


def is_core(model: Any) -> bool:
    """Whether all nodes are ONNX's own, and inputs, outputs and weights have plain dtypes."""
    from onnx import TensorProto

    graph = model.graph
    plain = {TensorProto.DataType.Value(name.upper()) for name in PLAIN}
    types = {_elem_type(value.type) for value in (*graph.input, *graph.output)}
    types |= {tensor.data_type for tensor in graph.initializer}
    return types <= plain and all(node.domain in ("", "ai.onnx") for node in _nodes(graph))


def data_sets(case: Any, model: Any) -> list[tuple[list[Any], list[Any]]]:
    """Inputs with their expected outputs."""
    if case.data_sets is not None:
        return [
            ([*map(_array, inputs)], [*map(_array, outputs)]) for inputs, outputs in case.data_sets
        ]
    if case.kind == LIGHT:
        return [_of_light(case, model)]
    folders = sorted(Path(case.model_dir).glob("test_data_set_*"))
    return [_read(folder, model) for folder in folders]


def _nodes(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _nodes(inner)


def _elem_type(kind: Any) -> int:
    """The dtype of a tensor, or of the tensors in a sequence or an optional."""
    name = kind.WhichOneof("value")
    if name in ("sequence_type", "optional_type"):
        return _elem_type(getattr(kind, name).elem_type)
    return kind.tensor_type.elem_type


def _light(case: Any) -> Path:
    import onnx

    return Path(onnx.__file__).parents[1] / case.url


def _of_light(case: Any, model: Any) -> tuple[list[Any], list[Any]]:
    from onnx import TensorProto
    from onnx.backend.test.runner import Runner

    weights = {t.name for t in model.graph.initializer}
    inputs = [Runner.generate_dummy_data(i) for i in model.graph.input if i.name not in weights]
    file = _light(case)
    outputs = [file.with_name(f"{file.stem}_output_{k}.pb") for k in range(len(model.graph.output))]
    return inputs, [_array(TensorProto.FromString(output.read_bytes())) for output in outputs]


def _array(value: Any) -> Any:
    """`value`, converted to an array if it is a protocol buffer of one."""
    from onnx import TensorProto, numpy_helper

    return np.asarray(numpy_helper.to_array(value)) if isinstance(value, TensorProto) else value


def _read(folder: Path, model: Any) -> tuple[list[Any], list[Any]]:
    """The inputs and outputs of a data set."""

    def load(kind: str, described: Any) -> list[Any]:
        files = [folder / f"{kind}_{k}.pb" for k in range(len(list(folder.glob(f"{kind}_*.pb"))))]
        return [_value(f.read_bytes(), d.type) for f, d in zip(files, described, strict=False)]

    return load("input", model.graph.input), load("output", model.graph.output)


def _value(data: bytes, described: Any) -> Any:
    import onnx
    from onnx import numpy_helper

    if described.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if described.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return _array(onnx.TensorProto.FromString(data))
