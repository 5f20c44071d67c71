"""Adjacent dataflow blocks become one."""

from relax_egraph.passes import merge_dataflow_blocks
from tests.support.transformed import becomes, stays


def test_an_output_that_only_the_next_block_reads_becomes_local() -> None:
    becomes(
        merge_dataflow_blocks,
        """
@R.function
def main(x: R.Tensor(("n",), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.sin(x)
        R.output(a, b)
    with R.dataflow():
        c = R.add(a, b)
        R.output(c)
    return (b, c)
""",
        """
@R.function
def main(x: R.Tensor(("n",), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.sin(x)
        c = R.add(a, b)
        R.output(b, c)
    return (b, c)
""",
    )


def test_a_binding_between_blocks_keeps_them_apart() -> None:
    stays(
        merge_dataflow_blocks,
        """
@R.function(pure=False)
def main(x: R.Tensor(("n",), "float32")):
    with R.dataflow():
        a = R.exp(x)
        R.output(a)
    b = R.call_packed("show", a, sinfo_args=[R.Tensor(("n",), "float32")])
    with R.dataflow():
        c = R.add(a, b)
        R.output(c)
    return c
""",
    )
