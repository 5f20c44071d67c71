"""The chain from definitions to uses."""

from relax_egraph import parse
from relax_egraph.ir.expr import Function
from relax_egraph.ir.uses import udchain


def test_each_variable_knows_what_it_is_used_for() -> None:
    module = parse("""
@R.function
def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
    with R.dataflow():
        a = R.add(x, y)
        b = R.multiply(a, a)
        unused = R.exp(a)
        gv = (b, x)
        R.output(gv)
    return gv
""")
    function = module["main"]
    assert isinstance(function, Function)

    chain = udchain(function.body.blocks[0])

    assert {v.name: [u.name for u in users] for v, users in chain.items()} == {
        "x": ["a", "gv"],
        "y": ["a"],
        "a": ["b", "unused"],
        "b": ["gv"],
        "unused": [],
        "gv": [],
    }
