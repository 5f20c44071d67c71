"""What the tensors of a function take."""

from relax_egraph import parse
from relax_egraph.ir.dims import parse as dim
from relax_egraph.passes.analyses.estimate_memory import MemoryUse, estimate_memory


def test_a_tensor_lives_from_the_call_that_makes_it_to_its_last_use() -> None:
    module = parse("""
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.reshape(a, R.shape([4, n]))
        c = R.log(b)
        gv = R.sum(c)
        R.output(gv)
    return gv
""")

    use = estimate_memory(module)["main"]

    a = dim("n * 16")
    assert use == MemoryUse(
        tensors=3,
        total=dim("n * 32 + 4"),
        live=(a, a, dim("n * 32"), dim("n * 16 + 4")),
        unknown=0,
    )
    assert use.peak({"n": 10}) == 320


def test_what_is_made_inside_of_branches_and_calls_counts() -> None:
    module = parse("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")):
        cls = Module
        y = cls.twice(x)
        if c:
            z = R.add(y, y)
        else:
            z = R.unique(y)
        return z

    @R.function(private=True)
    def twice(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.exp(x)
        z = R.exp(y)
        return z
""")

    use = estimate_memory(module)

    assert use["twice"] == MemoryUse(2, 32, (16, 32), 0)
    assert use["main"] == MemoryUse(4, 48, (16, 32, 16, 32, 16, 16), 1)
    assert use["main"].peak({}) == 32
