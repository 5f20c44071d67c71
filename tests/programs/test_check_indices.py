"""``R.check_indices``: indices outside of an axis are refused, by every way a program runs."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from relax_egraph import VirtualMachine, build, from_onnx, optimize, parse
from relax_egraph.errors import RunError, ScriptError
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Call
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.walk import bindings_of
from relax_egraph.passes.drop_proven_checks import drop_proven_checks
from relax_egraph.script import print_module
from relax_egraph.vm.machine import Engine
from tests.support.onnx_models import model, node, value

Array = npt.NDArray[Any]

DATA = np.arange(24, dtype=np.float32).reshape(4, 6)

OPERATORS = {
    "take": "R.take(x, {0}, axis=0)",
    "gather_elements": "R.gather_elements(x, {0}, axis=0)",
    "index_tensor": "R.index_tensor(x, ({0},))",
    "scatter_elements": "R.scatter_elements(x, {0}, u, axis=0)",
    "index_put": "R.index_put(x, ({0},), v)",
    "gather_nd": "R.gather_nd(x, {0})",
    "scatter_nd": "R.scatter_nd(x, {0}, v)",
}
"""Each with indices into the first axis, or into both."""


def program(body: Sequence[str], indices: str, *, result: str = "y") -> IRModule:
    lines = "\n".join(f"            {line}" for line in body)
    return parse(f"""
@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor((4, 6), "float32"),
        i: {indices},
        u: R.Tensor((1, 2), "float32"),
        v: R.Tensor((1,), "float32"),
    ):
        with R.dataflow():
{lines}
            R.output({result})
        return {result}
""")


def checked(name: str, dtype: str = "int64", extent: str = "2") -> IRModule:
    axes = "[0, 1]" if name.endswith("nd") else "[0]"
    body = (
        f'j = R.check_indices(i, R.shape([4, 6]), axes={axes}, operator="{name}")',
        f"y = {OPERATORS[name].format('j')}",
    )
    return program(body, f'R.Tensor((1, {extent}), "{dtype}")')


Way = Callable[[IRModule], Callable[..., Any]]


def machine(engine: Engine, *, optimized: bool = False) -> Way:
    def way(module: IRModule) -> Callable[..., Any]:
        module = optimize(module) if optimized else module
        return VirtualMachine(build(module), engine=engine)["main"]

    return way


WAYS: dict[str, Way] = {
    "reference": lambda module: lambda *args: evaluate(module, "main", *args),
    "interpreter": machine("interpreter"),
    "native": machine("native"),
    "optimized": machine("native", optimized=True),
}

ONES = (np.ones((1, 2), np.float32), np.ones(1, np.float32))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OPERATORS)
def test_an_index_outside_is_refused_by_every_operator(name: str, way: str) -> None:
    main = WAYS[way](checked(name))

    for index in (4, -5, 1 << 62, -(1 << 63)):
        with pytest.raises(RunError) as raised:
            main(DATA, np.array([[index, 0]]), *ONES)
        assert str(raised.value).removeprefix("main: j: ") == (
            f"{name}: index {index} is outside of axis 0 of extent 4, needs -4 to 3"
        )
    for index in (0, 3, -1, -4):
        outcome = main(DATA, np.array([[index, 0]]), *ONES)
        np.testing.assert_array_equal(
            outcome, main(DATA, np.array([[index % 4, 0]]), *ONES), strict=True
        )


@pytest.mark.parametrize("way", WAYS)
def test_rows_of_indices_are_into_axes_of_their_own(way: str) -> None:
    main = WAYS[way](checked("gather_nd"))

    assert main(DATA, np.array([[-4, 5]]), *ONES) == [5]
    sentence = "gather_nd: index 6 is outside of axis 1 of extent 6, needs -6 to 5"
    with pytest.raises(RunError, match=re.escape(sentence)):
        main(DATA, np.array([[3, 6]]), *ONES)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "uint64"])
@pytest.mark.parametrize("way", WAYS)
def test_indices_of_any_integer_dtype(way: str, dtype: str) -> None:
    main = WAYS[way](checked("take", dtype, '"s"'))
    largest = np.iinfo(dtype).max

    assert main(DATA, np.array([[3, 0, 1]], dtype), *ONES).shape == (1, 3, 6)
    assert main(DATA, np.zeros((1, 0), dtype), *ONES).shape == (1, 0, 6)
    with pytest.raises(RunError, match=f"index {largest} is outside of axis 0 of extent 4"):
        main(DATA, np.array([[3, largest, 9]], dtype), *ONES)


def test_a_constant_outside_is_refused_when_the_program_runs() -> None:
    body = (
        'j = R.check_indices(R.const([0, 4], "int64"), R.shape([4, 6]), axes=[0])',
        "y = R.take(x, j, axis=0)",
    )
    module = optimize(program(body, 'R.Tensor((1, 2), "int64")'))

    with pytest.raises(RunError, match="check_indices: index 4 is outside of axis 0 of extent 4"):
        VirtualMachine(build(module))["main"](DATA, np.zeros((1, 2), np.int64), *ONES)


def test_shapes_that_only_a_run_tells() -> None:
    module = program(
        (
            'j = R.check_indices(R.add(i, i), R.shape_of(x), axes=[1], operator="Gather")',
            "y = R.take(x, j, axis=1)",
        ),
        'R.Tensor(dtype="int64", ndim=1)',
    )
    main = VirtualMachine(build(module))["main"]

    assert main(DATA, np.array([2]), *ONES).tolist() == [[4], [10], [16], [22]]
    with pytest.raises(RunError, match="Gather: index 6 is outside of axis 1 of extent 6"):
        main(DATA, np.array([3]), *ONES)


PROVEN = {
    'R.const([[-4, 3]], "int64")': True,
    'R.const([[-5, 3]], "int64")': False,
    "R.argmax(x, axis=0)": True,
    "R.argmax(x, axis=1)": False,
    "R.arange(4)": True,
    "R.arange(5)": False,
    "R.floor_mod(i, R.const(4, 'int64'))": True,
    "R.floor_mod(i, R.const(5, 'int64'))": False,
    "R.clip(i, -4, 3)": True,
    "R.clip(i, 0, 4)": False,
    "R.minimum(R.maximum(i, R.const(0, 'int64')), R.const(3, 'int64'))": True,
    "R.minimum(i, R.const(3, 'int64'))": False,
    "R.astype(R.greater(x, R.const(0.0, 'float32')), 'int64')": True,
    "R.topk(x, k=2, axis=0, ret_type='both')[1]": True,
    "R.strided_slice(R.const([0, 1, 9], 'int64'), [0], [0], [1])": False,
    "R.concat((R.arange(3), R.argmin(x, axis=0)))": True,
    "R.where(R.greater(i, R.const(0, 'int64')), R.const(3, 'int64'), R.const(-4, 'int64'))": True,
    "R.reshape(R.expand_dims(R.arange(4), 0), (2, 2))": True,
    "i": False,
}


@pytest.mark.parametrize(("indices", "is_proven"), PROVEN.items())
def test_checks_that_hold_for_all_data_are_dropped(indices: str, is_proven: bool) -> None:
    body = (f"k = {indices}", "y = R.check_indices(k, R.shape([4, 6]), axes=[0])")
    module = program(body, 'R.Tensor((1, 2), "int64")')

    kept = "check_indices" in print_module(drop_proven_checks(module))

    assert kept is not is_proven


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            "R.check_indices(x, R.shape([4]), axes=[0])",
            'R.check_indices of R.Tensor((4, 6), "float32") for axes [0] of R.Shape((4,)): '
            "needs indices of integers",
        ),
        (
            "R.check_indices(i, R.shape([4]), axes=[1])",
            'R.check_indices of R.Tensor((1, 2), "int64") for axes [1] of R.Shape((4,)): '
            "needs axes of the shape, counted from 0",
        ),
        (
            "R.check_indices(R.concat((i, i), axis=1), R.shape([4, 5, 6]), axes=[0, 1, 2])",
            'R.check_indices of R.Tensor((1, 4), "int64") for axes [0, 1, 2] of '
            "R.Shape((4, 5, 6)): the last axis of the indices has extent 4, needs 3 at most",
        ),
    ],
)
def test_what_no_indices_are(call: str, sentence: str) -> None:
    with pytest.raises(ScriptError) as raised:
        program((f"y = {call}",), 'R.Tensor((1, 2), "int64")')
    assert sentence in str(raised.value)


UNUSED = {
    "by nothing": ("y = R.exp(x)",),
    "by a value that is unused": ("z = R.take(x, j, axis=0)", "y = R.exp(x)"),
    "by a part": (
        "z = R.take(x, j, axis=0)",
        "y = R.strided_slice(z, axes=[0], begin=[0], end=[1])",
    ),
    "for its shape": ("z = R.take(x, j, axis=0)", "y = R.shape_to_tensor(R.shape_of(z))"),
}
"""What reads the indices `j`, which are checked, less than whole."""


@pytest.mark.parametrize("read", UNUSED)
def test_a_check_stays_where_its_result_is_not_needed(read: str) -> None:
    check = 'j = R.check_indices(i, R.shape([4, 6]), axes=[0], operator="take")'
    module = program((check, *UNUSED[read]), 'R.Tensor((2,), "int64")')
    main = machine("auto", optimized=True)(module)

    with pytest.raises(RunError) as raised:
        main(DATA, np.array([0, 9]), np.ones((1, 2), np.float32), np.ones(1, np.float32))

    assert str(raised.value) == "take: index 9 is outside of axis 0 of extent 4, needs -4 to 3"


ONNX: dict[str, tuple[Array, ...]] = {
    "Gather": (np.array([0, 9]),),
    "GatherElements": (np.array([[0, 9]]),),
    "GatherND": (np.array([[9]]),),
    "ScatterElements": (np.array([[0, 9]]), np.ones((1, 2), np.float32)),
    "ScatterND": (np.array([[9]]), np.ones((1, 6), np.float32)),
}


@pytest.mark.parametrize("name", ONNX)
def test_imported_models_refuse_indices_outside(name: str) -> None:
    arrays = (DATA, *ONNX[name])
    names = [f"x{k}" for k in range(len(arrays))]
    inputs = [value(n, list(a.shape), a.dtype.name) for n, a in zip(names, arrays, strict=True)]
    outputs = [value("y", None)]
    imported = from_onnx(model([node(name, " ".join(names), "y")], inputs, outputs))
    main = VirtualMachine(build(imported))["main"]

    with pytest.raises(RunError) as raised:
        main(*arrays)

    assert str(raised.value) == (f"{name}: index 9 is outside of axis 0 of extent 4, needs -4 to 3")


@pytest.mark.parametrize("name", ["GatherND", "ScatterND"])
def test_rows_of_a_length_that_only_the_run_tells_are_checked(name: str) -> None:
    scattered = [value("u", None)] if name == "ScatterND" else []
    inputs = [value("x", [4, 6]), value("i", ["n", "depth"], "int64"), *scattered]
    names = " ".join(v.name for v in inputs)
    module = from_onnx(model([node(name, names, "y")], inputs, [value("y", None)]))
    for way in (machine("auto"), machine("auto", optimized=True), WAYS["reference"]):
        main = way(module)
        for row, axis, extent in ([9], 0, 4), ([3, 9], 1, 6), ([-5, 0], 0, 4):
            updates = [np.ones((1, 6)[: 3 - len(row)], np.float32)] if scattered else []
            with pytest.raises(RunError) as raised:
                main(DATA, np.array([row]), *updates)
            wrong = next(i for i in row if not -4 <= i < 6)
            assert str(raised.value).endswith(
                f"{name}: index {wrong} is outside of axis {axis} of extent {extent}, "
                f"needs {-extent} to {extent - 1}"
            )
        updates = [np.full(1, 7, np.float32)] if scattered else []
        result = main(DATA, np.array([[-4, 5]]), *updates)
        assert (result[0, 5] == 7) if scattered else (result == [5])


def test_imported_models_have_no_check_of_what_is_proven() -> None:
    nodes = [node("ArgMax", "x", "i", axis=0, keepdims=0), node("Gather", "x i", "y")]
    module = from_onnx(model(nodes, [value("x", [4, 6])], [value("y", [6, 6])]))

    called = [b.value for _, f in module.relax_functions() for b in bindings_of(f.body)]
    names = [c.op.name for c in called if isinstance(c, Call) and isinstance(c.op, Op)]

    assert "take" in names
    assert "check_indices" not in names
