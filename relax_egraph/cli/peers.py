"""Other systems that run ONNX models, imported at first use."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from relax_egraph.cli.group import Unusable

Peer: TypeAlias = Callable[[Path, int, Sequence[Any]], Callable[[], Sequence[Any]]]
"""Creates, from a model, a number of threads and inputs, a function that returns the outputs."""

_ERRORS_ONLY = 3


def _onnxruntime() -> Peer:
    try:
        onnxruntime: Any = import_module("onnxruntime")
    except ImportError:
        needed = "the package onnxruntime: pip install onnxruntime"
        raise Unusable(f"--vs onnxruntime needs {needed}") from None

    def session(model: Path, threads: int, inputs: Sequence[Any]) -> Callable[[], Sequence[Any]]:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = _ERRORS_ONLY
        cpu = ["CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(str(model), options, providers=cpu)
        names = [declared.name for declared in session.get_inputs()]
        feeds = dict(zip(names, inputs, strict=True))
        session.run(None, feeds)  # reports errors before the measurement
        return lambda: session.run(None, feeds)

    return session


PEERS: Mapping[str, Callable[[], Peer]] = {"onnxruntime": _onnxruntime}
"""The systems by name; a missing package raises `Unusable`."""
