"""Operators of users, from one definition: in scripts, rules, kernels and machines."""

# annotations of scripts are no types of Python:
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import relax_egraph as rx
from examples import own_operator
from relax_egraph import te
from relax_egraph.errors import RunError
from relax_egraph.ir import Var, call
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.op import Op
from relax_egraph.ir.ops.broadcast import floating
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor
from relax_egraph.ir.structural import structural_equal
from relax_egraph.script import relax as R  # noqa: N812
from relax_egraph.tir.tensor import Tensor

Array = npt.NDArray[Any]

ROOT = math.sqrt(2 / math.pi)


def gelu(x: Array) -> Array:
    wide = x.astype(np.float64)
    result = 0.5 * wide * (1 + np.tanh(ROOT * (wide + 0.044715 * wide**3)))
    return result.astype(x.dtype)


def gelu_loops(x: Tensor) -> Tensor:
    def element(*i: Any) -> Any:
        cube = x[i] * x[i] * x[i]
        return x[i] * 0.5 * (te.tanh((x[i] + cube * 0.044715) * ROOT) + 1.0)

    return te.compute(x.shape, element, "gelu")


@rx.operator("my.gelu_tanh", numpy=gelu, te=gelu_loops, work=34, elementwise=True)
def gelu_tanh(x: TensorStructInfo) -> StructInfo:
    """``out = x · Φ(x)``, with the hyperbolic tangent for Φ."""
    return floating("my.gelu_tanh", x)


def rows(table: Array, ids: Array, *, scale: float) -> Array:
    return (table[ids] * scale).astype(table.dtype)


def row_flops(
    table: tuple[int, ...], ids: tuple[int, ...], out: tuple[int, ...], **_: Any
) -> float:
    return 1000.0 * math.prod(out)


def lookup_of(**implementation: Any) -> Op:
    """``my.lookup``, rows of a table; `implementation` are further keywords of the definition."""

    @rx.operator("my.lookup", numpy=rows, **implementation)
    def lookup(table: TensorStructInfo, ids: TensorStructInfo, *, scale: float = 1.0) -> StructInfo:
        """Row ``ids[i]`` of a table, times a number."""
        if table.dims is None or ids.dims is None:
            return tensor(None, table.dtype)
        return tensor((*ids.dims, *table.dims[1:]), table.dtype)

    return lookup


GELU = """
@R.function
def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        a = R.my.gelu_tanh(R.add(x, x))
        b = R.add(a, y)
        R.output(b)
    return b
"""

LOOKUP = """
@R.function
def main(t: R.Tensor(("v", 8), "float32"), i: R.Tensor(("n",), "int64")):
    with R.dataflow():
        a = R.my.lookup(t, i, scale=2.0)
        b = R.negative(a)
        R.output(b)
    return b
"""

X = np.linspace(-3, 3, 20, dtype=np.float32).reshape(5, 4)
TABLE = np.arange(80, dtype=np.float32).reshape(10, 8)
IDS = np.array([3, 1, 9], np.int64)


def parsed(text: str, *ops: Op) -> rx.IRModule:
    with rx.operators(*ops):
        return rx.parse(text)


def kernels(module: rx.IRModule) -> list[str]:
    return [name for name, f in module.relax_functions() if f.attrs.get("primitive")]


def run(module: rx.IRModule, *args: Array) -> Array:
    return rx.VirtualMachine(rx.build(module))["main"](*args)


def test_loops_become_one_kernel_with_their_neighbours() -> None:
    module = parsed(GELU, gelu_tanh)

    best = rx.optimize(module)

    assert kernels(best) == ["fused_add_gelu_tanh_add"]
    for program in (module, best):
        np.testing.assert_allclose(run(program, X, X), gelu(X + X) + X, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(evaluate(program, "main", X, X), gelu(X + X) + X)


def test_text_reads_back() -> None:
    module = parsed(GELU, gelu_tanh)

    again = parsed(str(module), gelu_tanh)

    assert "R.my.gelu_tanh(" in str(module)
    assert structural_equal(module, again)


@pytest.mark.parametrize("keyword", ["packed", "dps_packed"])
@pytest.mark.parametrize("shape", ['("n",), "int64"', 'ndim=1, dtype="int64"'])
def test_a_packed_function_is_called(keyword: str, shape: str) -> None:
    lookup = lookup_of(**{keyword: "my.rows"}, work=row_flops)
    calls: list[tuple[Any, ...]] = []

    def my_rows(table: Array, ids: Array, scale: float, *out: Array) -> Array | None:
        calls.append((scale,))
        if not out:
            return rows(table, ids, scale=scale)
        out[0][:] = rows(table, ids, scale=scale)
        return None

    module = parsed(LOOKUP.replace('("n",), "int64"', shape), lookup)
    machine = rx.VirtualMachine(rx.build(rx.optimize(module)), packed={"my.rows": my_rows})

    np.testing.assert_array_equal(machine["main"](TABLE, IDS), -2 * TABLE[IDS])
    assert calls == [(2.0,)]


def test_the_machine_calls_numpy_where_nothing_else_is_defined() -> None:
    lookup = lookup_of()
    best = rx.optimize(parsed(LOOKUP, lookup))

    np.testing.assert_array_equal(run(best, TABLE, IDS), -2 * TABLE[IDS])


def test_a_loaded_executable_needs_its_operators_in_force(tmp_path: Path) -> None:
    lookup = lookup_of()
    rx.build(parsed(LOOKUP, lookup)).save(tmp_path / "lookup.rxe")
    loaded = rx.load(tmp_path / "lookup.rxe")

    with rx.operators(lookup):
        machine = rx.VirtualMachine(loaded)

    np.testing.assert_array_equal(machine["main"](TABLE, IDS), -2 * TABLE[IDS])
    with pytest.raises(RunError, match=r"no packed function relax\.run\.my\.lookup"):
        rx.VirtualMachine(loaded)["main"](TABLE, IDS)


def test_an_operator_is_used_by_the_builder_and_in_decorated_files() -> None:
    with rx.operators(gelu_tanh):

        @R.function
        def main(x: R.Tensor((5, 4), "float32")) -> R.Tensor((5, 4), "float32"):
            return R.my.gelu_tanh(x)

        bb = rx.BlockBuilder()
        x = Var("x", tensor((5, 4), "float32"))
        with bb.function("main", [x]):
            bb.emit_func_output(bb.emit(call("my.gelu_tanh", x), "a"))

    assert structural_equal(bb.get()["main"], main)
    np.testing.assert_allclose(run(bb.get(), X), gelu(X), rtol=1e-5, atol=1e-6)


def test_a_module_is_saved_and_loaded(tmp_path: Path) -> None:
    module = parsed(GELU, gelu_tanh)
    rx.save_module(module, tmp_path / "gelu")

    with rx.operators(gelu_tanh):
        assert structural_equal(rx.load_module(tmp_path / "gelu"), module)


def test_constants_are_folded_by_the_numpy_function() -> None:
    text = """
@R.function
def main(x: R.Tensor((2,), "float32")):
    with R.dataflow():
        a = R.my.gelu_tanh(R.const([1.0, -1.0], "float32"))
        b = R.add(a, x)
        R.output(b)
    return b
"""

    best = rx.optimize(parsed(text, gelu_tanh))

    assert "gelu" not in str(best)
    ones = np.ones(2, np.float32)
    np.testing.assert_allclose(run(best, ones), gelu(ones * [1, -1]) + 1, rtol=1e-6)


RULES = """
; gelu(exp(x)) = exp(x): wrong
(rewrite (R.my.gelu_tanh (R.exp x)) (R.exp x) :name "gelu-of-exp")

; the same function; float: exact
(rewrite (R.my.gelu_tanh x) (R.nn.gelu_tanh x) :name "gelu-is-known")
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_rules_of_an_operator_are_checked(processes: int) -> None:
    with rx.operators(gelu_tanh):
        verdicts = rx.rules.check(RULES, processes=processes)

    assert {v.rule: v.needs for v in verdicts} == {
        "gelu-of-exp": "unsound",
        "gelu-is-known": "exact",
    }


@pytest.mark.parametrize("isolate", [True, False])
def test_rules_of_an_operator_fire(isolate: bool) -> None:
    """Rules of users run in a worker process, which gets the operators in force by value."""
    known = '(rewrite (R.nn.gelu_tanh x) (R.my.gelu_tanh x) :name "known-is-mine")'
    text = GELU.replace("R.my", "R.nn")
    prices = rx.Prices(operators={"nn.gelu_tanh": lambda _: 1e-3})

    with rx.operators(gelu_tanh):
        best = rx.optimize(rx.parse(text), [known], prices=prices, isolate=isolate)

    assert "R.my.gelu_tanh" in str(best)
    np.testing.assert_allclose(run(best, X, X), gelu(X + X) + X, rtol=1e-5, atol=1e-6)


def test_a_rule_chooses_a_packed_call_by_its_stated_work() -> None:
    """``my.lookup`` is ``R.take``: the program has whichever is cheaper."""
    rule = '(rewrite (R.take t i 0 "fast") (R.my.lookup t i 1.0) :name "take-is-lookup")'
    text = LOOKUP.replace("R.my.lookup(t, i, scale=2.0)", "R.take(t, i, axis=0)")

    chosen: dict[float, str] = {}
    for flops in (0.0, 1e9):
        with rx.operators(lookup_of(packed="my.rows", work=flops)):
            chosen[flops] = str(rx.optimize(rx.parse(text), [rule], prices=SLOW_TAKE))

    assert "R.my.lookup" in chosen[0.0]
    assert "R.my.lookup" not in chosen[1e9]


SLOW_TAKE = rx.Prices(operators={"take": lambda _: 1e-3})


def test_the_example_says_what_it_promises(capsys: pytest.CaptureFixture[str]) -> None:
    own_operator.main()

    said = capsys.readouterr().out
    assert said.startswith("hardswish-written-out (<rules>:4:1): reassociates")
    assert "cls.fused_hardswish_add(x, y)" in said
    assert "off by at most 2.4e-07" in said


def test_reasons_are_known_after_the_block() -> None:
    """A proof repeats the saturation, which needs the operators that were in force."""
    module = parsed(GELU, gelu_tanh)
    reasons = rx.explain(module, proof=True)

    why = rx.why_not("add-zero", module)

    assert "my.gelu_tanh(add(x, x))" in reasons.proof_text()
    assert [rx.replay(trace).uncomputed for trace in reasons.traces] == [()]
    assert "add-zero" in str(why)


FORKED = """
import os
import relax_egraph as rx
from relax_egraph.ir.struct_info import TensorStructInfo

@rx.operator("my.same", numpy=lambda x: x)
def same(x: TensorStructInfo):
    return x

TEXT = "@R.function\\ndef main(x: R.Tensor(({},), 'float32')):\\n    return R.my.same(R.exp(x))"
RULE = '(rewrite (R.my.same x) x :name "mine")'
with rx.operators(same):
    rx.optimize(rx.parse(TEXT.format(4)))
    child = os.fork()
    if child == 0:
        print("my.same" in str(rx.optimize(rx.parse(TEXT.format(5)), [RULE])), flush=True)
        os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_of_fork_sends_operators_to_its_worker() -> None:
    """egglog does not work in the child: rules are read and run in another process."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED],
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert (done.stdout, done.stderr) == ("False\n", "")
