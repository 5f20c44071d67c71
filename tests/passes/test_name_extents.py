"""Extents that only the run knows get names: what follows is compiled, not called in numpy."""

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import RunError
from relax_egraph.passes import name_extents
from relax_egraph.script import parse
from relax_egraph.vm import VirtualMachine
from tests.support.transformed import becomes, equal_values, stays


def test_parameters_get_symbols() -> None:
    becomes(
        name_extents,
        """
@R.function
def main(x: R.Tensor(dtype="float32", ndim=2), t: R.Tuple(R.Tensor("float32", ndim=1), R.Object)):
    y = R.exp(x)
    u = t[0]
    v = R.exp(u)
    return (y, v)
""",
        """
@R.function
def main(
    x: R.Tensor(("x_0", "x_1"), "float32"), t: R.Tuple(R.Tensor(("t_0_0",), "float32"), R.Object)
):
    y = R.exp(x)
    u = t[0]
    v = R.exp(u)
    return (y, v)
""",
    )


def test_tensors_of_one_shape_have_the_same_extents() -> None:
    becomes(
        name_extents,
        """
@R.function
def main(s: R.Shape(ndim=2), a: R.Tensor(s, "float32"), b: R.Tensor(s, "float32")):
    c = R.add(a, b)
    d = R.zeros(s, "float32")
    e = R.add(c, d)
    return e
""",
        """
@R.function
def main(
    s: R.Shape(("s_0", "s_1")), a: R.Tensor(("s_0", "s_1"), "float32"),
    b: R.Tensor(("s_0", "s_1"), "float32"),
):
    c = R.add(a, b)
    d = R.zeros(s, "float32")
    e = R.add(c, d)
    return e
""",
    )


def test_a_result_that_data_decide_is_cast_where_an_operator_reads_it() -> None:
    becomes(
        name_extents,
        """
@R.function
def main(x: R.Tensor(("n",), "int64"), x_0: R.Tensor((), "bool")):
    with R.dataflow():
        u = R.unique(x)
        last = R.unique(x)
        R.output(u, last)
    if x_0:
        y = R.unique(u)
        z = R.negative(y)
    else:
        z = u
    return (z, last)
""",
        """
@R.function
def main(x: R.Tensor(("n",), "int64"), x_0: R.Tensor((), "bool")):
    u_0, y_0 = T.int64(), T.int64()
    with R.dataflow():
        u = R.unique(x)
        u1 = R.match_cast(u, R.Tensor((u_0,), "int64"))
        last = R.unique(x)
        R.output(u, u1, last)
    if x_0:
        y = R.unique(u1)
        y1 = R.match_cast(y, R.Tensor((y_0,), "int64"))
        z = R.negative(y1)
    else:
        z = u1
    return (z, last)
""",
    )


def test_names_that_are_taken_are_left() -> None:
    becomes(
        name_extents,
        """
@R.function
def main(x: R.Tensor(dtype="float32", ndim=2), y: R.Tensor(("x_0",), "float32")):
    x_1 = R.exp(x)
    return (x_1, y)
""",
        """
@R.function
def main(x: R.Tensor(("x_01", "x_11"), "float32"), y: R.Tensor(("x_0",), "float32")):
    x_1 = R.exp(x)
    return (x_1, y)
""",
    )


@pytest.mark.parametrize(
    "text",
    [
        'def main(x: R.Tensor(("n",), "float32")):\n    y = R.exp(x)\n    return y',
        'def main(x: R.Tensor("float32")):\n    y = R.exp(x)\n    return y',
        'def main(x: R.Tensor("float32", ndim=2)):\n    y = R.call_packed("f", x)\n    return y',
    ],
)
def test_known_shapes_unknown_ranks_and_values_that_no_operator_reads_stay(text: str) -> None:
    stays(name_extents, f"@R.function\n{text}\n")


OF_ONE_SHAPE = """
@R.function
def main(s: R.Shape(ndim=2), a: R.Tensor(s, "float32"), b: R.Tensor(s, "float32")):
    with R.dataflow():
        x = R.exp(a)
        y = R.add(x, b)
        z = R.multiply(y, y)
        R.output(z)
    return z
"""


def test_operators_on_an_unknown_shape_are_one_kernel() -> None:
    module = parse(OF_ONE_SHAPE)
    best = rx.optimize(module)
    a, b = np.ones((3, 4), "float32"), np.full((3, 4), 2, "float32")

    executable = rx.build(best)
    result = VirtualMachine(executable)["main"]((3, 4), a, b)

    assert [n for n in best.functions if n != "main"] == ["fused_exp_add_multiply"]
    assert not any(name.startswith("relax.run.") for name in executable.callees)
    np.testing.assert_allclose(result, (np.exp(a) + b) ** 2, 1e-6)
    equal_values(result.shape, (3, 4))


def test_a_tensor_that_has_not_the_declared_shape_is_refused() -> None:
    run = VirtualMachine(rx.build(rx.optimize(parse(OF_ONE_SHAPE))))["main"]
    a = np.ones((3, 4), "float32")

    with pytest.raises(RunError, match=r"parameter a: .* dimension 1 is 4, needs s_1 = 5"):
        run((3, 5), a, a)
