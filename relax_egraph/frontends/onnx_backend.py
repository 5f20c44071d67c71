"""The interface of ``onnx.backend``: models are imported, optimized, built and run.

from relax_egraph.frontends.onnx_backend import backend
outputs = backend.prepare(model).run(inputs)
"""

from collections.abc import Sequence
from typing import Any, cast

import onnx
from onnx.backend import base

import relax_egraph as rx


class Prepared(base.BackendRep):
    """A compiled model."""

    def __init__(self, machine: rx.VirtualMachine, outputs: int) -> None:
        self._main = machine["main"]
        self._outputs = outputs

    def run(self, inputs: Sequence[Any], **kwargs: Any) -> tuple[Any, ...]:
        """The outputs for `inputs`, in the order of the model.

        Sequences are lists.
        """
        result = self._main(*(tuple(i) if isinstance(i, list) else i for i in inputs))
        outputs = cast(tuple[Any, ...], result) if self._outputs > 1 else (result,)
        return tuple(list(o) if isinstance(o, tuple) else o for o in outputs)


class Backend(base.Backend):
    """Runs ONNX models on the processor."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Prepared:
        """Import, optimize and build `model`; raises `ModelError` where that cannot be."""
        machine = rx.VirtualMachine(rx.build(rx.optimize(rx.from_onnx(model))))
        return Prepared(machine, len(model.graph.output))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether `device` is the processor."""
        return device.split(":")[0] == "CPU"


backend = Backend
"""The backend for ``onnx.backend.test.BackendTest``."""
