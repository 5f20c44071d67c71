"""Sessions of onnxruntime on one thread."""

from importlib import import_module
from pathlib import Path
from typing import Any

onnxruntime: Any = import_module("onnxruntime")  # optional: absent when types are checked

_ERRORS_ONLY = 3


def session_of(model: Path | bytes) -> Any:
    """A session of a model on this processor, which says nothing but errors."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
