"""Reinterpretation of bits as another dtype."""

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.dtypes import TABLE, is_float
from relax_egraph.ir.expr import Expr


@converts("BitCast")
def bitcast(node: Node) -> Expr:
    """Supported between integers, which wrap; no operator reads the bits of floats."""
    source, target = node.dtype(0), node.attrs.dtype("to")
    if TABLE[source].bits != TABLE[target].bits:
        raise ModelError(f"it reinterprets {source} as {target}, which differs in size")
    if source != target and (is_float(source) or is_float(target)):
        raise ModelError(f"it reinterprets {source} as {target}, needs integers")
    return node.cast(node[0], target)
