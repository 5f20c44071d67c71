"""Whole architectures as users export them: by torch with dynamic sizes, random weights.

``python -m bench.architectures [WORDS] [--exporter torchscript] [--json FILE]`` imports, optimizes,
builds and runs each, compares with torch at several sizes and times it beside onnxruntime.
"""

from importlib.util import find_spec

NEEDED = ("torch", "onnxscript", "transformers", "onnx", "onnxruntime")


def installed() -> bool:
    """Whether all required packages are installed."""
    return all(map(find_spec, NEEDED))
