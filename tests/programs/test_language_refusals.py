"""What a program cannot compute is refused by an error of the project, wherever it runs."""

import pytest

from relax_egraph import VirtualMachine, build, parse
from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.evaluate import evaluate
from tests.support.transformed import floats

ZEROS = """
@R.function
def main(x: R.Tensor(("n",), "float32")):
    n = T.int64()
    y = R.zeros(R.shape([{dim}]), dtype="float32")
    return y
"""


@pytest.mark.parametrize(
    ("dim", "evaluated", "built"),
    [
        (
            "7 // (n - 3)",
            "main: y: the dimension 7 // (n - 3) divides by zero",
            "the dimension 7 // (3 - 3) divides by zero",
        ),
        (
            "7 % (n - 3)",
            "main: y: the dimension 7 % (n - 3) divides by zero",
            "the dimension 7 % (3 - 3) divides by zero",
        ),
        (
            "n - 5",
            "main: y: R.zeros of R.shape([-2]): negative dimensions are not allowed",
            "main: match_cast y_shape: expected R.Shape((max(0, n - 5),)), got R.Shape((-2,)): "
            "dimension 0 is -2, needs max(0, n - 5) = 0",
        ),
        (
            "n * 1000000000000000",
            "main: y: R.zeros of R.shape([3000000000000000]): Unable to allocate 10.7 PiB for an "
            "array with shape (3000000000000000,) and data type float32",
            "a storage of 12000000000000000 bytes cannot be allocated",
        ),
    ],
)
def test_a_shape_that_cannot_be_is_refused(dim: str, evaluated: str, built: str) -> None:
    module = parse(ZEROS.format(dim=dim))

    with pytest.raises(RunError) as refusal:
        evaluate(module, "main", floats(3))
    with pytest.raises(RunError) as run_refusal:
        VirtualMachine(build(module))["main"](floats(3))

    assert str(refusal.value) == evaluated
    assert str(run_refusal.value) == built


def test_a_claim_that_divides_by_zero_is_refused() -> None:
    n = dims.symbol("n")

    with pytest.raises(RunError, match=r"^the dimension 4 // n divides by zero$"):
        dims.evaluate(dims.floordiv(4, n), {"n": 0})


def test_a_mark_of_byte_order_before_the_text_is_no_part_of_it() -> None:
    text = ZEROS.format(dim="n").strip()

    assert parse(f"\ufeff{text}").script() == parse(text).script()
