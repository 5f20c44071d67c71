"""Inner loops on AArch64: what is in them, and that the table has a rate for each."""

import shutil

import pytest

from bench.inner_loops import InnerLoop, cycles, inner_loops
from bench.mca import intrinsic_loops, operator_loops, packed_product, product, rows

TEXT = """
f:
	mov	x8, xzr
.LBB0_1:
	ldr	q0, [x0], #16
	fmla	v1.4s, v0.4s,	v2.s[0]
	b.lt	.LBB0_1
	ret
.Lfunc_end0:
"""


def is_vector(instruction: str) -> bool:
    return ".4s" in instruction or " q" in instruction


def test_a_block_that_branches_to_itself_is_a_loop() -> None:
    code = ("ldr q0, [x0], #16", "fmla v1.4s, v0.4s, v2.s[0]", "b.lt .LBB0_1")

    assert list(inner_loops(TEXT)) == [InnerLoop("f", code)]


def test_a_product_multiplies_by_lanes_and_keeps_its_sums_in_registers() -> None:
    loops = [loop for loop in intrinsic_loops("gemm_tile") if loop.function == "gemm_5x4"]

    (main,) = (loop for loop in loops if loop.count("fmla"))
    assert main.count("fmla") == 80
    assert {i.split(".s")[-1] for i in main.instructions if i.startswith("fmla")} == {
        *("[0]", "[1]", "[2]", "[3]")
    }
    assert not any("[sp" in i for i in main.instructions)
    assert not main.count("ld1r") + main.count("dup")


@pytest.mark.parametrize(
    "expression", ["R.nn.softmax(x)", "R.exp(x)", "R.nn.gelu(x)", "R.max(x, axis=[1])"]
)
def test_maps_and_rows_stay_vectors(expression: str) -> None:
    loops = [o for o in operator_loops(expression) if any(map(is_vector, o.instructions))]

    assert loops
    for loop in loops:
        scalars = [i for i in loop.instructions if i.startswith("f") and not is_vector(i)]
        assert not scalars
        assert not loop.count("bl")


def test_what_products_are_compared_with_uses_each_register_once() -> None:
    for code, sums in ((product(6, 2, 4), 12), (packed_product(4), 16)):
        multiplied = [i.split()[1] for i in code if i.startswith("fmla")]
        assert len(set(multiplied)) == sums
        assert len(multiplied) == 4 * sums


@pytest.mark.skipif(not shutil.which("llvm-mca-22"), reason="needs llvm-mca of LLVM 22")
def test_no_loop_is_faster_than_the_vector_units() -> None:
    for row in rows():
        multiply_adds = sum(i.startswith("fmla") for i in row.instructions)
        assert cycles(row.instructions, "neoverse-n1") >= multiply_adds / 2
