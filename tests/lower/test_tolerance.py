"""How far loop functions may be off: as far as each function that calls them says."""

import json
from pathlib import Path
from typing import Any

import pytest

import relax_egraph as rx
from relax_egraph.errors import IllFormed
from relax_egraph.ir import BlockBuilder, call, const, tensor
from relax_egraph.ir.expr import Function, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.tolerance import TOLERANCE
from relax_egraph.ir.walk import constants_of
from relax_egraph.lower.mark_tolerance import mark_tolerance
from relax_egraph.lower.schedule.conv.minimal_filters import F4
from relax_egraph.tir.stmt import PrimFunc
from tests.lower.schedule.test_conv import LAST
from tests.lower.schedule.test_conv_winograd import filters, weights
from tests.support.command import invoke


def module(**tolerances: Any) -> IRModule:
    """Functions that each convolve alike, and say how far they may be off."""
    bb = BlockBuilder()
    for name, tolerance in tolerances.items():
        x = Var("x", tensor((1, 28, 28, 32), "float32"))
        attrs = {} if tolerance is None else {"tolerance": tolerance}
        with bb.function(name, [x], attrs=attrs):
            with bb.dataflow():
                y = call("nn.conv2d", x, const(weights(32, 32)), padding=(1,), **LAST)
                gv = bb.emit_output(y)
            bb.emit_func_output(gv)
    return bb.get()


def said(module: IRModule) -> dict[str, Any]:
    """What the functions of the graph level say, those that do."""
    found = {n: f.attrs.get("tolerance") for n, f in module.relax_functions()}
    return {name: tolerance for name, tolerance in found.items() if tolerance is not None}


@pytest.mark.parametrize(
    ("tolerances", "filter"),
    [
        ({"main": None}, "F(2, 3)"),
        ({"main": 0.02}, "F(4, 3)"),
        ({"main": 0}, "F(2, 3)"),
        ({"main": 1e-5}, "F(2, 3)"),
        ({"main": 0.02, "other": 1e-4}, "F(4, 3)"),
        ({"main": 0.02, "other": None}, "F(2, 3)"),
    ],
)
def test_of_several_callers_the_least_counts(tolerances: dict[str, Any], filter: str) -> None:
    lowered = rx.lower_module(module(**tolerances))

    assert filters(module(**tolerances)) == {filter}
    assert not any("tolerance" in f.attrs for f in lowered.functions.values() if is_loops(f))


def is_loops(function: object) -> bool:
    return isinstance(function, PrimFunc)


def test_what_a_loop_function_says_itself_stays() -> None:
    text = """
    @T.prim_func
    def own(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        T.func_attr({"tolerance": 0.5})
        for i in T.serial(4):
            y[i] = x[i]
    """
    marked = mark_tolerance(rx.parse(text))

    assert marked["own"].attrs["tolerance"] == 0.5


@pytest.mark.parametrize("tolerance", ["much", -1.0, 1, float("nan"), float("inf"), True])
def test_a_tolerance_is_a_number(tolerance: Any) -> None:
    message = f"function 'main': tolerance is {tolerance!r}, needs {TOLERANCE.needs}"

    for step in (rx.optimize, rx.build):
        with pytest.raises(IllFormed) as caught:
            step(module(main=tolerance))
        assert str(caught.value) == message


def test_the_optimizer_sets_what_functions_say() -> None:
    given = module(main=0.02, other=None)

    assert said(rx.optimize(given)) == {"main": 0.02}
    assert said(rx.optimize(given, tolerance=0.1)) == {"main": 0.1, "other": 0.1}
    assert said(rx.optimize(given, tolerance=0)) == {}
    assert all(isinstance(f, Function) for _, f in given.relax_functions())


def test_only_a_function_that_says_so_stores_weights_in_fewer_bits() -> None:
    w, bb = const(weights(64, 64)[0, 0]), BlockBuilder()
    for name, attrs in (("exact", {}), ("rough", {"tolerance": 0.02})):
        x = Var("x", tensor((1, 64), "float32"))
        with bb.function(name, [x], attrs=attrs):
            with bb.dataflow():
                gv = bb.emit_output(call("matmul", x, w))
            bb.emit_func_output(gv)

    best = rx.optimize(bb.get())

    dtypes = {n: {c.data.dtype.name for c in constants_of(f)} for n, f in best.relax_functions()}
    assert dtypes["exact"] == {"float32"}
    assert dtypes["rough"] & {"bfloat16", "int8"}


def test_the_command_says_what_is_less_exact(tmp_path: Path) -> None:
    rx.save_module(module(main=None), tmp_path / "conv.py")
    arguments = [str(tmp_path / "conv.py"), "-o", str(tmp_path / "best.py"), "--json"]

    def run(*options: str) -> Any:
        return json.loads(invoke("optimize", *arguments, *options).stdout)

    assert run()["approximations"] == []
    (found,) = run("--tolerance", "1e-4")["approximations"]
    assert (found["by"], found["error"]) == ("F(4, 3)", F4.error)
    assert rx.load_module(tmp_path / "best.py")["main"].attrs["tolerance"] == 1e-4
