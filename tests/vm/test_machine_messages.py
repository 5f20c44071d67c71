"""What is said of wrong arguments: each message whole, the same from both engines."""

from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import RunError
from relax_egraph.vm.machine import Engine

ENGINES: tuple[Engine, ...] = ("interpreter", "auto")

TEXT = """
@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor(("n", 4), "float32"),
        y: R.Tensor(("m", "n * 2"), "float32"),
        p: R.Tuple(R.Tensor(("n",), "int64"), R.Tuple(R.Tensor((), "bool"), R.Shape(["n", "m"]))),
        k: R.Prim("int64"),
    ):
        n = T.int64()
        with R.dataflow():
            z = R.add(R.reshape(x, R.shape([n * 4])), R.zeros(R.shape([n * 4]), "float32"))
            R.output(z)
        return (z, p, y)

    @R.function
    def fill(s: R.Shape(["n"])):
        n = T.int64()
        return R.ones(R.shape([n]), "float32")

    @R.function
    def cast(x: R.Tensor("float32", ndim=2), y: R.Tensor("float32", ndim=1)):
        n = T.int64()
        m = T.int64()
        a = R.match_cast(x, R.Tensor((n, m), "float32"))
        b = R.match_cast(y, R.Tensor((n * m,), "float32"))
        return R.add(R.reshape(a, R.shape([n * m])), b)
"""

SIGNATURE = (
    'main(x: R.Tensor((n, 4), "float32"), y: R.Tensor((m, n * 2), "float32"), '
    'p: R.Tuple(R.Tensor((n,), "int64"), R.Tuple(R.Tensor((), "bool"), R.Shape((n, m)))), '
    'k: R.Prim("int64"))'
)
X = 'main: parameter x: expected R.Tensor((n, 4), "float32"), got'
PAIR = (
    'main: parameter p: expected R.Tuple(R.Tensor((n,), "int64"), '
    'R.Tuple(R.Tensor((), "bool"), R.Shape((n, m)))), got'
)
SHAPE = "main: parameter p, field 1, field 1: expected R.Shape((n, m)), got"
FILL = "fill: parameter s: expected R.Shape((n,)), got"


@pytest.fixture(scope="module", params=ENGINES)
def vm(request: pytest.FixtureRequest) -> rx.VirtualMachine:
    return rx.VirtualMachine(rx.build(rx.parse(TEXT)), engine=request.param)


def given(**changed: Any) -> dict[str, Any]:
    """Arguments of ``main`` by name, some of them changed, those that are ``...`` left out."""
    usual: dict[str, Any] = {
        "x": np.ones((3, 4), np.float32),
        "y": np.ones((2, 6), np.float32),
        "p": (np.ones(3, np.int64), (np.array(True), (3, 2))),
        "k": 5,
    }
    return {name: value for name, value in (usual | changed).items() if value is not ...}


def message(function: Any, *args: Any, **named: Any) -> str:
    with pytest.raises(RunError) as error:
        function(*args, **named)
    return str(error.value)


def test_arguments_that_are_right_are_taken(vm: rx.VirtualMachine) -> None:
    x, y, p, k = given().values()

    for args, named in [((x, y, p, k), {}), ((x, y), {"k": k, "p": p}), ((), given())]:
        z, _, _ = vm["main"](*args, **named)
        np.testing.assert_array_equal(z, x.ravel())


@pytest.mark.parametrize(
    ("count", "named", "expected"),
    [
        (0, {}, f"{SIGNATURE} takes 4 arguments, got 0"),
        (3, {}, f"{SIGNATURE} takes 4 arguments, got 3"),
        (5, {}, f"{SIGNATURE} takes 4 arguments, got 5"),
        (3, {"q": 1}, f"{SIGNATURE} has no parameter q"),
        (4, {"x": 1}, f"{SIGNATURE}: parameter x is given twice"),
        (2, {"k": 1}, f"{SIGNATURE}: parameter p is missing"),
    ],
)
def test_the_number_of_arguments(
    vm: rx.VirtualMachine, count: int, named: dict[str, Any], expected: str
) -> None:
    args = [*given().values(), None][:count]

    assert message(vm["main"], *args, **named) == expected


ONES = np.ones((3, 4), np.float32)
TRUE = np.array(True)
INDICES = np.ones(3, np.int64)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"x": ONES[0]}, f'{X} R.Tensor((4,), "float32")'),
        ({"x": ONES.astype(np.float64)}, f'{X} R.Tensor((3, 4), "float64")'),
        ({"x": ONES.astype(np.float16)}, f'{X} R.Tensor((3, 4), "float16")'),
        ({"x": ONES[:, :3]}, f'{X} R.Tensor((3, 3), "float32"): dimension 1 is 3, needs 4'),
        ({"x": None}, f"{X} None"),
        ({"x": 3.5}, f"{X} 3.5"),
        ({"x": "abc"}, f"{X} an object of type str"),
        ({"x": object}, f"{X} an object of type type"),
        (
            {"y": np.ones((2, 5), np.float32)},
            'main: parameter y: expected R.Tensor((m, n * 2), "float32"), '
            'got R.Tensor((2, 5), "float32"): dimension 1 is 5, needs n * 2 = 6',
        ),
        ({"p": (INDICES,)}, f'{PAIR} R.Tuple(R.Tensor((3,), "int64"))'),
        ({"p": ONES}, f'{PAIR} R.Tensor((3, 4), "float32")'),
        (
            {"p": (INDICES[:2], (TRUE, (3, 2)))},
            'main: parameter p, field 0: expected R.Tensor((n,), "int64"), '
            'got R.Tensor((2,), "int64"): dimension 0 is 2, needs n = 3',
        ),
        (
            {"p": (INDICES, (np.array(1), (3, 2)))},
            'main: parameter p, field 1, field 0: expected R.Tensor((), "bool"), '
            'got R.Tensor((), "int64")',
        ),
        ({"p": (INDICES, (TRUE, (3,)))}, f"{SHAPE} R.Shape((3,))"),
        (
            {"p": (INDICES, (TRUE, (3, 5)))},
            f"{SHAPE} R.Shape((3, 5)): dimension 1 is 5, needs m = 2",
        ),
        ({"p": (INDICES, (TRUE, (3, 2.0)))}, f"{SHAPE} R.Tuple(3, 2.0)"),
        ({"k": 5.5}, 'main: parameter k: expected R.Prim("int64"), got 5.5'),
        ({"k": None}, 'main: parameter k: expected R.Prim("int64"), got None'),
    ],
)
def test_a_wrong_argument(vm: rx.VirtualMachine, changed: dict[str, Any], expected: str) -> None:
    named = given(**changed)

    assert message(vm["main"], **named) == expected
    assert message(vm["main"], *named.values()) == expected


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1.5,), f"{FILL} R.Tuple(1.5)"),
        ((True,), f"{FILL} R.Tuple(True)"),
        (("a",), f"{FILL} R.Tuple(an object of type str)"),
        (5, f"{FILL} 5"),
        ((-1,), "a storage of -4 bytes cannot be allocated"),
        ((1 << 61,), "a storage of 9223372036854775808 bytes cannot be allocated"),
        ((1 << 70,), "a storage of 4722366482869645213696 bytes cannot be allocated"),
    ],
)
def test_a_wrong_shape(vm: rx.VirtualMachine, shape: Any, expected: str) -> None:
    assert message(vm["fill"], shape) == expected
    assert vm["fill"]((3,)).tolist() == [1, 1, 1]


def test_a_claim_within_a_function(vm: rx.VirtualMachine) -> None:
    x, y = np.ones((3, 4), np.float32), np.ones(13, np.float32)

    assert message(vm["cast"], x, y) == (
        'cast: match_cast b: expected R.Tensor((m * n,), "float32"), '
        'got R.Tensor((13,), "float32"): dimension 0 is 13, needs m * n = 12'
    )
    assert vm["cast"](x, y[1:]).tolist() == [2] * 12


def test_a_function_that_is_not_there(vm: rx.VirtualMachine) -> None:
    with pytest.raises(KeyError) as error:
        _ = vm["mian"]

    assert str(error.value) == (
        "no function 'mian' to call; there are: main, fill, cast; did you mean main?"
    )
