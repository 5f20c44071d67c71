"""Encoded images, which are not supported."""

from relax_egraph.errors import ModelError
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.expr import Expr


@converts("ImageDecoder")
def image_decoder(node: Node) -> Expr:
    """Refuse the node: images are not decoded."""
    raise ModelError("image files are not decoded here: give the model's input as pixels")
