"""Images as files, which are not decoded here."""

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.expr import Expr


@converts("ImageDecoder")
def image_decoder(node: Node) -> Expr:
    """Refused."""
    raise ModelError("image files are not decoded here: give the model's input as pixels")
