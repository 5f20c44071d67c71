"""Images cross from region to region with channels last; other values cross as they are."""

from relax_egraph.egraph.encoding.crossing import with_channels_last
from relax_egraph.egraph.encoding.regions import Region
from relax_egraph.ir.expr import Attr, Binding, Call, DataflowBlock, DataflowVar, Expr, Function
from relax_egraph.script import parse

TEXT = """
@R.function
def main(x: R.Tensor(("n", 3, 8, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32"),
         v: R.Tensor((4, 4, 3, 3), "float32")):
    with R.dataflow():
        c = R.nn.conv2d(x, w)
        a = R.nn.relu(c)
        m = R.mean(a, axis=[2, 3])
        s = R.nn.softmax(x, axis=1)
        d = R.nn.conv2d(a, v)
        e = R.multiply(s, s)
        gv = R.sum(d, axis=[1, 2, 3])
        R.output(m, e, gv)
    return m, e, gv
"""


def permutation(binding: Binding) -> tuple[str, tuple[Expr, ...], Attr]:
    """The operator of a binding, its operands, and its axes."""
    assert isinstance(binding.value, Call)
    return str(binding.value.op), binding.value.args, binding.value.attrs["axes"]


def test_an_image_of_a_convolution_crosses_with_channels_last() -> None:
    main = parse(TEXT)["main"]
    assert isinstance(main, Function)
    (block,) = main.body.blocks
    assert isinstance(block, DataflowBlock)
    var = {b.var.name: b.var for b in block.bindings}
    outputs = [v for v in var.values() if not isinstance(v, DataflowVar)]
    first = Region(block.bindings[:4], (var["a"], var["m"], var["s"]))
    second = Region(block.bindings[4:], (var["e"], var["gv"]))

    before, after = with_channels_last((first, second), outputs)

    (last,) = (b for b in before.bindings if b not in first.bindings)
    (back,) = (b for b in after.bindings if b not in second.bindings)
    assert permutation(last) == ("R.permute_dims", (var["a"],), (0, 2, 3, 1))
    assert before.bindings[-1] is last
    assert before.outputs == (var["m"], var["s"], last.var)
    assert permutation(back) == ("R.permute_dims", (last.var,), (0, 3, 1, 2))
    assert (after.bindings[0], back.var) == (back, var["a"])
    assert after.outputs == second.outputs
