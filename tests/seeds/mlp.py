"""The two-layer network for images of clothes: its weights, its builder, what it computes."""

from pathlib import Path

import numpy as np

from relax_egraph import BlockBuilder, IRModule, VirtualMachine, build, parse
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import Constant, Function, Var, const
from relax_egraph.ir.struct_info import tensor
from relax_egraph.ir.walk import post_order_visit
from tests.seeds.programs import Array

_SHAPES = {"w0": (128, 784), "b0": (128,), "w1": (10, 128), "b1": (10,)}

_draw = np.random.default_rng(0).standard_normal

PARAMS: dict[str, Array] = {k: _draw(s).astype(np.float32) / 16 for k, s in _SHAPES.items()}
"""Random weights of the sizes of the document's file, which is not there."""

IMAGE = _draw((1, 784)).astype(np.float32)


def create_model() -> IRModule:
    """The model, built as the document builds it."""
    bb = BlockBuilder()
    x = Var("x", tensor((1, 784), "float32"))
    w0 = const(PARAMS["w0"], "float32")
    b0 = const(PARAMS["b0"], "float32")
    w1 = const(PARAMS["w1"], "float32")
    b1 = const(PARAMS["b1"], "float32")

    with bb.function("main", [x]):
        with bb.dataflow():
            lv0 = bb.emit(call("matmul", x, call("permute_dims", w0)))
            lv1 = bb.emit(call("add", lv0, b0))
            lv2 = bb.emit(call("nn.relu", lv1))
            lv3 = bb.emit(call("matmul", lv2, call("permute_dims", w1)))
            lv4 = bb.emit(call("add", lv3, b1))
            gv = bb.emit_output(lv4)
        bb.emit_func_output(gv)

    return bb.get()


def listing(name: str) -> IRModule:
    """A module as the document prints it, with the weights for its ``metadata``."""
    path = Path(__file__).parent / "listings" / f"{name}.txt"
    return parse(path.read_text("utf-8"), constants=list(PARAMS.values()))


def constants_of(module: IRModule) -> list[Array]:
    """The constants of ``main``, in order of use."""
    found: list[Array] = []
    function = module["main"]
    assert isinstance(function, Function)
    post_order_visit(function, lambda e: found.append(e.data) if isinstance(e, Constant) else None)
    return found


def expected() -> Array:
    """The network in numpy."""
    hidden = np.maximum(IMAGE @ PARAMS["w0"].T + PARAMS["b0"], 0)
    return hidden @ PARAMS["w1"].T + PARAMS["b1"]


def assert_runs(module: IRModule) -> None:
    """Assert that `module`, built, is the network."""
    result = VirtualMachine(build(module))["main"](IMAGE)

    np.testing.assert_allclose(result, expected(), rtol=1e-4, atol=1e-5, strict=True)
