"""Definitions of operators by users, and the sets of operators that are in force."""

# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

import pickle
import subprocess
import sys
from threading import Barrier, Thread
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import relax_egraph as rx
from relax_egraph import te
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.scope import vocabulary
from relax_egraph.errors import OperatorError, RuleError, ScriptError
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.op import Op
from relax_egraph.ir.operators import find, in_force, named
from relax_egraph.ir.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    tensor,
)

Array = npt.NDArray[Any]


def twice_of(factor: int) -> Op:
    @rx.operator("my.twice", numpy=lambda x: x * x.dtype.type(factor), elementwise=True)
    def twice(x: TensorStructInfo) -> StructInfo:
        """``out = 2 x``."""
        return x

    return twice


def same(x: TensorStructInfo) -> StructInfo:
    return x


def refusal(name: str, rule: Any = same, **keywords: Any) -> str:
    """The message of the refused definition of the operator `name`."""
    with pytest.raises(OperatorError) as refused:
        rx.operator(name, **dict[str, Any](numpy=np.asarray) | keywords)(rule)
    return str(refused.value)


def test_a_wrong_name_is_refused() -> None:
    assert refusal("nn.relu") == "R.nn.relu is a built-in operator: choose another name"
    assert refusal("twice") == "'twice' is no name of an operator: needs a namespace, 'my.gelu'"
    assert refusal("my.2x") == "'my.2x' is no name of an operator: needs a namespace, 'my.gelu'"


def test_a_wrong_rule_is_refused() -> None:
    def unannotated(x):  # noqa: ANN001, ANN202
        return x

    def of_a_list(x: list[int]) -> StructInfo:
        return tensor((len(x),), "int64")

    def with_default(x: TensorStructInfo, axis: int = 0) -> StructInfo:
        return x

    def of_nothing(x: TensorStructInfo) -> StructInfo:
        return None  # pyright: ignore

    needed = "operands are TensorStructInfo, TupleStructInfo, ShapeStructInfo or PrimStructInfo"
    assert refusal("my.op", None) == (
        "R.my.op: needs a function, its struct-info rule, and not None"
    )
    assert refusal("my.op", unannotated) == (
        f"R.my.op: the parameter x of its struct-info rule has no annotation: {needed}"
    )
    assert refusal("my.op", of_a_list) == (
        f"R.my.op: the annotation of x is no type of an operand: {needed}"
    )
    assert refusal("my.op", with_default) == (
        "R.my.op: the parameter axis of its struct-info rule has a default: "
        "an attribute is keyword-only, behind *"
    )
    assert refusal("my.op", of_nothing) == (
        "R.my.op: its struct-info rule returns None, needs the struct info of the result, "
        'such as tensor((n, 4), "float32")'
    )


def test_one_implementation_is_enough() -> None:
    said = refusal("my.op", te=lambda x: x, packed="f")

    assert said == "R.my.op: needs one of te, packed and dps_packed"


def test_numpy_must_return_what_the_rule_says() -> None:
    """``np.float64`` numbers make float64 of float32."""
    said = refusal("my.root", numpy=lambda x: x * np.sqrt(2))

    assert said == (
        'R.my.root of R.Tensor((3, 2), "float32"): its numpy function returns '
        'R.Tensor((3, 2), "float64"), and its rule says R.Tensor((3, 2), "float32"): '
        "they must agree"
    )


def test_numpy_is_compared_with_the_rule_whenever_it_runs() -> None:
    @rx.operator("my.first", numpy=lambda x: x[: x[0]])
    def first(x: TensorStructInfo) -> StructInfo:
        return tensor((1,), x.dtype) if x.ndim == 1 else tensor((), None)

    with pytest.raises(OperatorError, match=r"its numpy function returns .*they must agree"):
        apply_op(first, [np.array([2, 2, 2])], {})


def test_te_must_return_what_the_rule_says() -> None:
    def halves(x: Any) -> Any:
        return te.compute(x.shape, lambda *i: te.cast(x[i], "float64"), "halves")

    @rx.operator("my.half", numpy=lambda x: x, te=halves)
    def half(x: TensorStructInfo) -> StructInfo:
        return x

    with rx.operators(half):
        module = rx.parse(main("R.my.half(x)"))

    with pytest.raises(OperatorError) as refused:
        rx.build(module)
    assert str(refused.value) == (
        'R.my.half of R.Tensor((n,), "float32"): its te function returns '
        'R.Tensor((n,), "float64"), and its rule says R.Tensor((n,), "float32"): they must agree'
    )


def main(value: str) -> str:
    return f"""
@R.function
def main(x: R.Tensor(("n",), "float32")):
    with R.dataflow():
        a = {value}
        R.output(a)
    return a
"""


def test_a_rule_that_fails_refuses_its_operands() -> None:
    @rx.operator("my.head", numpy=lambda x: x[0])
    def head(x: TensorStructInfo) -> StructInfo:
        assert x.dims is not None
        return tensor(x.dims[1:], x.dtype) if x.dims else [][0]

    with rx.operators(head):
        rx.parse(main("R.my.head(x)"))
        with pytest.raises(ScriptError, match="its struct-info rule fails, IndexError"):
            rx.parse(main("R.my.head(R.my.head(x))"))


def test_operands_and_attributes_are_those_of_the_rule() -> None:
    def filled(shape: tuple[int, ...], value: float, *, dtype: str) -> Array:
        return np.full(shape, value, dtype)

    @rx.operator("my.filled", numpy=filled)
    def my_filled(
        shape: ShapeStructInfo, value: PrimStructInfo, *, dtype: str = "float32"
    ) -> StructInfo:
        return tensor(shape.values, dtype, shape.ndim)

    with rx.operators(my_filled):
        module = rx.optimize(rx.parse(main("R.add(x, R.my.filled((1,), 2.5))")))
        machine = rx.VirtualMachine(rx.build(module))

    np.testing.assert_array_equal(machine["main"](np.zeros(3, np.float32)), np.full(3, 2.5, "f4"))


def test_an_operator_is_in_force_within_its_block() -> None:
    twice = twice_of(2)

    with rx.operators(twice):
        assert find("my.twice") is twice
        assert "my.twice" in in_force()
        assert "R.my.twice" in {d.name for d in vocabulary()}
        module = rx.parse(main("R.my.twice(x)"))

    assert find("my.twice") is None
    assert "R.my.twice" not in {d.name for d in vocabulary()}
    assert "R.my.twice" in str(rx.optimize(module))  # a module has its operators
    with pytest.raises(ScriptError, match=r"unknown operator R\.my\.twice"):
        rx.parse(main("R.my.twice(x)"))
    with pytest.raises(RuleError):
        rx.rules.load("(rewrite (R.my.twice x) (R.add x x))")
    with pytest.raises(OperatorError) as missing:
        named("my.twice")
    assert str(missing.value) == (
        "unknown operator R.my.twice; "
        "an operator of a user is in force in `with rx.operators(...):`"
    )


def test_a_name_has_one_operator() -> None:
    twice, thrice = twice_of(2), twice_of(3)

    with rx.operators(twice), rx.operators(twice):
        with pytest.raises(OperatorError) as refused, rx.operators(thrice):
            pass
        with pytest.raises(OperatorError):
            rx.optimize(_module_of(thrice))

    assert str(refused.value) == "the name R.my.twice is taken by another operator in force"


def _module_of(op: Op) -> rx.IRModule:
    with rx.operators(op):
        return rx.parse(main("R.my.twice(x)"))


def test_a_set_is_one_value() -> None:
    """Caches have a set as their key: the same operators are the same set, in any order."""
    twice = twice_of(2)

    @rx.operator("my.same", numpy=lambda x: x)
    def my_same(x: TensorStructInfo) -> StructInfo:
        return x

    with rx.operators(twice, my_same):
        both = in_force()
    with rx.operators(my_same), rx.operators(twice):
        assert in_force() is both
        assert pickle.loads(pickle.dumps(twice)) is twice
    received = pickle.loads(pickle.dumps(both))
    assert received is pickle.loads(pickle.dumps(both))
    assert [op.name for op in received.own] == ["my.same", "my.twice"]
    assert received.get("my.twice").own.reference(np.float32(3)) == 6


def test_a_book_has_the_operators_it_was_read_with() -> None:
    with rx.operators(twice_of(2)):
        book = RuleBook.default(['(rewrite (R.my.twice x) (R.add x x) :name "twice")'])

    assert "R.my.twice" in book.declarations
    assert "R.my.twice" not in RuleBook.default().declarations


def test_threads_have_operators_of_their_own() -> None:
    """Two operators of one name, at the same time, through the whole compiler."""
    values: dict[int, float] = {}
    errors: list[BaseException] = []
    together = Barrier(2)

    def use(factor: int) -> None:
        try:
            twice = twice_of(factor)
            with rx.operators(twice):
                together.wait()
                module = rx.parse(main("R.my.twice(R.my.twice(x))"))
                best = rx.optimize(module, isolate=False)
                machine = rx.VirtualMachine(rx.build(best))
                together.wait()
                values[factor] = float(machine["main"](np.ones(1, np.float32))[0])
        except BaseException as error:
            errors.append(error)
            together.abort()

    threads = [Thread(target=use, args=(factor,)) for factor in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not errors
    assert values == {2: 4.0, 3: 9.0}


def test_an_operator_is_registered_for_the_process() -> None:
    script = """
import threading
import relax_egraph as rx
from relax_egraph.ir.struct_info import TensorStructInfo

@rx.operator("my.twice", numpy=lambda x: 2 * x)
def twice(x: TensorStructInfo):
    return x

rx.register_operators(twice)
rx.register_operators(twice)
thread = threading.Thread(target=lambda: print(rx.ir.call("my.twice", rx.ir.const(1.0))))
thread.start()
thread.join()
"""

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert "R.my.twice" in done.stdout
