"""From a graph of ATen operators to what runs: compiled as a whole, or in parts beside torch's."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from functorch.compile import make_boxed_func
from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

import relax_egraph as rx
from relax_egraph.errors import ModelError, RelaxEgraphError
from relax_egraph.frontends.torch.graph import said
from relax_egraph.frontends.torch_backend.frozen import Frozen, Run, arrays_of
from relax_egraph.frontends.torch_backend.options import Options
from relax_egraph.frontends.torch_backend.program import Program
from relax_egraph.frontends.torch_backend.traced import Traced, traced


class Unsupported(UserWarning):
    """Operators of a graph stay in torch."""


def compiled(module: fx.GraphModule, weights: Mapping[int, torch.Tensor], options: Options) -> Run:
    """What runs in place of `module`; inputs that are `weights`, by place, are constants.

    Unsupported nodes stay in torch, with a warning, or are refused with `ModelError` if the
    options are strict; so does a graph that cannot be built.
    """
    whole = traced(module, arrays_of(weights))
    if whole.module is None:
        return _in_parts(module, whole.problems, options)
    program = _built_or(make_boxed_func(module), whole, options)
    if not weights:
        return program
    return Frozen(program, weights, lambda: compiled(module, {}, options))


def _built_or(eager: Run, graph: Traced, options: Options) -> Run:
    """`graph` as a program, or `eager` with a warning where that cannot be."""
    try:
        return _built(graph, options)
    except RelaxEgraphError as refusal:
        if options.strict:
            raise
        warnings.warn(Unsupported(f"relax_egraph leaves a graph to torch: {refusal}"), stacklevel=2)
        return eager


def _built(graph: Traced, options: Options) -> Program:
    assert graph.module is not None
    if options.explain is None:
        best = rx.optimize(graph.module, hints=dict(graph.hints), **options.of_optimize)
    else:
        reasons = rx.explain(graph.module, hints=dict(graph.hints), **options.of_optimize)
        Path(options.explain).write_text(reasons.page(), "utf-8")
        best = reasons.module
    return Program(rx.build(best), graph.takes, graph.outputs)


class _Supported(OperatorSupportBase):
    """All calls but those of `refused`."""

    def __init__(self, refused: Mapping[fx.Node, str]) -> None:
        self._refused = refused

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: fx.Node) -> bool:
        """Whether `node` may be in a part that is compiled."""
        return node.op == "call_function" and node not in self._refused


def _in_parts(module: fx.GraphModule, problems: Mapping[fx.Node, str], options: Options) -> Run:
    """`module` with all but the nodes in `problems` compiled, in as few parts as possible."""
    message = "\n".join(said(problems))
    if options.strict:
        raise ModelError(f"the graph has nodes that cannot be converted:\n{message}")
    warnings.warn(Unsupported(f"relax_egraph leaves nodes to torch:\n{message}"), stacklevel=3)
    partitioner = CapabilityBasedPartitioner(module, _Supported(problems))
    parted = partitioner.fuse_partitions(partitioner.propose_partitions())
    for name, part in list(parted.named_children()):
        if isinstance(part, fx.GraphModule):
            setattr(parted, name, _Part(part, options))
    parted.recompile()
    return make_boxed_func(parted)


class _Part(torch.nn.Module):
    """A part of a graph, compiled if it can be."""

    def __init__(self, part: fx.GraphModule, options: Options) -> None:
        super().__init__()
        (last,) = (n for n in part.graph.nodes if n.op == "output")
        self._is_single = not isinstance(last.args[0], list | tuple)
        self._eager = part
        self._program: Run | None = None
        graph = traced(part, {})
        if graph.module is not None:
            self._program = _built_or(make_boxed_func(self._listed), graph, options)

    def _listed(self, *args: Any) -> list[Any]:
        outputs = self._eager(*args)
        return [outputs] if self._is_single else list(outputs)

    def forward(self, *args: Any) -> Any:
        """The outputs of the part."""
        if self._program is None:
            return self._eager(*args)
        outputs = self._program(list(args))
        return outputs[0] if self._is_single else tuple(outputs)
