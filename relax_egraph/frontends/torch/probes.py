"""Every value of an exported program: as ours, and as torch computes it."""

import operator
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

from relax_egraph.frontends.building.complex_parts import Parts
from relax_egraph.frontends.building.results import module_of
from relax_egraph.frontends.probed import Probe, Probed
from relax_egraph.frontends.torch.exported import Opened, inputs_of, open_program, weight_of
from relax_egraph.frontends.torch.graph import place_of
from relax_egraph.frontends.torch.tensors import array_of, tensor_of
from relax_egraph.ir.expr import Expr, Tuple
from relax_egraph.ir.struct_info import TensorStructInfo


def probed(program: ExportedProgram) -> Probed:
    """`program`, after torch's decompositions; raises `ModelError` like `from_torch`."""
    opened = open_program(program)
    bb = opened.graph.bb
    with bb.function("main", [*opened.params, *opened.states]):
        opened.convert()
        nodes = [n for n in opened.program.graph.nodes if _is_probed(n, opened)]
        values = [opened.graph.given(opened.graph.values[node]) for node in nodes]
        bb.emit_func_output(Tuple((*values, *opened.results())))
    probes = tuple(Probe(n.name, _operator(n), place_of(n) or "") for n in nodes)
    return Probed("torch", module_of(bb), probes, partial(_run, opened, nodes))


def _is_probed(node: fx.Node, opened: Opened) -> bool:
    value = opened.graph.values.get(node)
    return (
        node.op == "call_function"
        and (isinstance(value, Parts) or _is_tensor(value))
        and isinstance(node.meta.get("val"), torch.Tensor)
    )


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Expr) and isinstance(value.struct_info, TensorStructInfo)


def _operator(node: fx.Node) -> str:
    """The overload that computes `node`; with the place of the result, if it has several."""
    if node.target is not operator.getitem:
        return str(node.target)
    whole, place = node.args
    assert isinstance(whole, fx.Node)
    return f"{whole.target}[{place}]"


class _Recorder(fx.Interpreter):
    """Runs a graph, and keeps the values of `nodes`."""

    def __init__(self, module: fx.GraphModule, nodes: Sequence[fx.Node]) -> None:
        super().__init__(module)
        self._nodes = frozenset(nodes)
        self.kept: dict[fx.Node, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        """The value of `n`."""
        value = super().run_node(n)
        if n in self._nodes:
            self.kept[n] = value
        return value


def _run(opened: Opened, nodes: Sequence[fx.Node], args: Sequence[Any]) -> list[Any]:
    """The values of `nodes` by torch, then the results, for arguments of ``main``."""
    program = opened.program
    params = (*opened.params, *opened.states)
    given = dict(zip((p.name for p in params), args, strict=True))
    recorder = _Recorder(program.graph_module, nodes)
    with torch.no_grad():
        outputs = recorder.run(*_inputs(program, given))
    results = [recorder.kept[n] for n in nodes] + opened.in_order(outputs)
    return [array_of(r) if isinstance(r, torch.Tensor) else r for r in results]


def _inputs(program: ExportedProgram, given: Mapping[str, Any]) -> list[Any]:
    """The inputs of the graph: those that are `given` by name, and the weights."""
    inputs: list[Any] = []
    for node, spec in inputs_of(program):
        if node.name in given:
            value = given[node.name]
            if not isinstance(value, int):
                value = tensor_of(value.copy(), of_complex=node.meta["val"].dtype.is_complex)
            inputs.append(value)
        elif spec.target is not None:
            inputs.append(weight_of(program, spec))
        else:
            inputs.append(getattr(spec.arg, "value", None))
    return inputs
