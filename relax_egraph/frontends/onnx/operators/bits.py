"""The same bits as another dtype."""

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.dtypes import TABLE, is_float
from relax_egraph.ir.expr import Expr


@converts("BitCast")
def bitcast(node: Node) -> Expr:
    """Between integers, which wrap: there is no operator that reads the bits of floats."""
    given, asked = node.dtype(0), node.attrs.dtype("to")
    if TABLE[given].bits != TABLE[asked].bits:
        raise ModelError(f"it makes {asked} of {given}, which has not as many bits")
    if given != asked and (is_float(given) or is_float(asked)):
        raise ModelError(f"it makes {asked} of the bits of {given}, needs integers")
    return node.cast(node[0], asked)
