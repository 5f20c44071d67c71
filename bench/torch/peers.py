"""Other compilers of networks of torch, on one thread."""

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch

Peer: TypeAlias = Callable[[torch.nn.Module, Sequence[torch.Tensor]], Callable[[], Any]]
"""Prepares a network for inputs, and returns a call of it, after the first one."""


def _inductor(network: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> Callable[[], Any]:
    torch.compiler.reset()
    call = torch.compile(network, backend="inductor", dynamic=True)
    call(*inputs)
    return lambda: call(*inputs)


def _onnxruntime(network: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> Callable[[], Any]:
    from bench.sessions import session_of  # and onnxruntime

    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of itself
        program = torch.onnx.export(network, tuple(inputs), dynamo=True, verbose=False)
    assert program is not None
    session = session_of(program.model_proto.SerializeToString())
    names = [declared.name for declared in session.get_inputs()]
    feeds = {name: tensor.numpy() for name, tensor in zip(names, inputs, strict=True)}
    session.run(None, feeds)
    return lambda: session.run(None, feeds)


PEERS: Mapping[str, Peer] = {"inductor": _inductor, "onnxruntime": _onnxruntime}
