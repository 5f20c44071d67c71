"""What operators need of sizes is known behind them; what the module refuses it still refuses."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, explain, optimize, parse
from relax_egraph.errors import RunError, ScriptError
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.demands import demands_of
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Call, ShapeExpr, Tuple, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.struct_info import Shape, TensorStructInfo, tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import find_ill_formed
from relax_egraph.passes import fit_operands
from relax_egraph.script import print_module

Vars = Mapping[str, Var]


def shape(*extents: str) -> Shape:
    return tuple(map(dims.parse, extents))


@dataclass(frozen=True)
class Program:
    """``z = exp(apply(…, p))``, where `p` is the first `end` of a parameter along an axis.

    `learned` is what follows from that the operator has a result.
    """

    params: Mapping[str, tuple[str, ...]]
    source: str
    axis: int
    end: str
    apply: Callable[[Vars], Call]
    learned: str = "s <= 64"
    dtypes: Mapping[str, str] = field(default_factory=dict[str, str])

    def module(self) -> IRModule:
        params = {
            n: Var(n, tensor(shape(*extents), self.dtypes.get(n, "float32")))
            for n, extents in self.params.items()
        }
        bb = BlockBuilder()
        with bb.function("main", list(params.values())):
            with bb.dataflow():
                begin, end = ShapeExpr((0,)), ShapeExpr(shape(self.end))
                axes = (self.axis,)
                cut = call("strided_slice", params[self.source], begin, end, axes=axes)
                p = bb.emit(cut, "p")
                y = bb.emit(self.apply({**params, "p": p}), "y")
                z = bb.emit_output(call("exp", y), "z")
            bb.emit_func_output(z)
        return bb.get()


def of(name: str, *operands: str, **attrs: Any) -> Callable[[Vars], Call]:
    return lambda v: call(name, *(v[o] for o in operands), **attrs)


def of_all(name: str, *operands: str, **attrs: Any) -> Callable[[Vars], Call]:
    return lambda v: call(name, Tuple(tuple(v[o] for o in operands)), **attrs)


def to(name: str, operand: str, *extents: str) -> Callable[[Vars], Call]:
    return lambda v: call(name, v[operand], ShapeExpr(shape(*extents)))


WINDOWS = {"x": ("s", "2"), "t": ("(s + 3) // 4 * 4", "2")}

PROGRAMS: Mapping[str, Program] = {
    "add": Program({"x": ("b", "s", "8"), "t": ("1", "64", "8")}, "t", 1, "s", of("add", "x", "p")),
    "a table of one row": Program(
        {"x": ("b", "s", "8"), "t": ("1", "1", "8")}, "t", 1, "s", of("add", "x", "p"), ""
    ),
    "rounded up": Program(
        {"x": ("s", "3"), "t": ("n", "3")}, "t", 0, "-(-s // 2)", of("add", "x", "p"), ""
    ),
    "where": Program(
        {"c": ("b", "s", "8"), "t": ("64", "8"), "x": ("b", "1", "8")},
        *("t", 0, "s", of("where", "c", "p", "x")),
        dtypes={"c": "bool"},
    ),
    "matmul": Program({"x": ("b", "s"), "t": ("64", "8")}, "t", 0, "s", of("matmul", "x", "p")),
    "leading axes": Program(
        {"x": ("s", "2", "3"), "t": ("64", "3", "4")}, "t", 0, "s", of("matmul", "x", "p")
    ),
    "concat": Program(
        {"x": ("s", "3"), "t": ("64", "2")}, "t", 0, "s", of_all("concat", "x", "p", axis=1)
    ),
    "stack": Program({"x": ("s", "3"), "t": ("64", "3")}, "t", 0, "s", of_all("stack", "p", "x")),
    "reshape": Program(
        {"x": ("s",), "t": ("64", "8")}, "t", 0, "s", to("reshape", "p", "s", "2", "4")
    ),
    "a shape": Program(
        {"x": ("s", "8"), "t": ("64",)}, "t", 0, "s", to("reshape", "x", "min(64, s)", "2", "4")
    ),
    "broadcast": Program(
        {"x": ("b", "s"), "t": ("1", "64")}, "t", 1, "s", to("broadcast_to", "p", "b", "s")
    ),
    "einsum": Program(
        {"x": ("b", "s"), "t": ("64", "3")},
        *("t", 0, "s", of_all("einsum", "x", "p", subscripts="bs,sh->bh")),
    ),
    "vector": Program(
        {"x": ("b", "s"), "t": ("64",)}, "t", 0, "s", of("nn.prelu", "x", "p", axis=1)
    ),
    "channels": Program(
        {"t": ("1", "64", "3", "3"), "w": ("2", "s", "2", "2")},
        *("t", 1, "s", of("nn.conv2d", "p", "w")),
    ),
    "windows of a convolution": Program(
        {"t": ("1", "2", "s"), "w": ("3", "2", "5")},
        *("t", 2, "s", of("nn.conv1d", "p", "w", strides=(2,)), "s >= 5"),
    ),
    "windows of a pool": Program(
        {"t": ("2", "3", "s")},
        *("t", 2, "s", of("nn.max_pool1d", "p", pool_size=(4,), padding=(1,)), "s >= 2"),
    ),
    "one symbol": Program(
        {"x": ("s", "3"), "t": ("n", "3")}, "t", 0, "n", of("ewise_add", "x", "p"), "n == s"
    ),
    "a number": Program(
        {"x": ("3", "n"), "t": ("4", "5")}, "t", 0, "4", of("matmul", "x", "p"), "n == 4"
    ),
    "windows": Program(WINDOWS, "t", 1, "2", of_all("concat", "x", "p", axis=1), "s % 4 == 0"),
    "windows that repeat": Program(WINDOWS, "t", 1, "2", of("add", "x", "p"), ""),
    "either repeats": Program(
        {"x": ("s", "3"), "t": ("n", "3")}, "t", 0, "n", of("add", "x", "p"), ""
    ),
}


def arguments(module: IRModule, sizes: Mapping[str, int], random: Random) -> list[Any]:
    draw = np.random.default_rng(random.randrange(1 << 30))
    arrays: list[Any] = []
    for param in module["main"].params:  # pyright: ignore[reportAttributeAccessIssue]
        info = param.struct_info
        assert isinstance(info, TensorStructInfo)
        array = draw.standard_normal([dims.evaluate(d, sizes) for d in info.dims or ()])
        arrays.append(array > 0 if info.dtype == "bool" else array.astype(info.dtype))
    return arrays


def outcome(run: Callable[..., Any], args: list[Any]) -> Any:
    """The result of a call, or what it says behind the names of function and variable."""
    try:
        return run(*args)
    except RunError as refusal:
        return str(refusal)[str(refusal).index("R.") :]


def assert_same(actual: Any, expected: Any) -> None:
    if isinstance(expected, str) or isinstance(actual, str):
        assert actual == expected
    else:
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def sizes_of(module: IRModule, random: Random) -> dict[str, int]:
    names = frozenset[str]()
    for param in module["main"].params:  # pyright: ignore[reportAttributeAccessIssue]
        names |= frozenset[str]().union(*map(dims.symbols, param.struct_info.dims))
    return {n: random.choice([0, 1, 2, 3, 4, 8, 63, 64, 65, 70]) for n in sorted(names)}


@pytest.mark.parametrize("count", [12, pytest.param(300, marks=pytest.mark.fuzz)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_refuses_what_it_refused_and_nothing_else(name: str, count: int) -> None:
    module, random = PROGRAMS[name].module(), Random(name)
    fitted = fit_operands(module)
    for _ in range(count):
        args = arguments(module, sizes_of(module, random), random)
        expected = outcome(lambda *a: evaluate(module, "main", *a), args)
        assert_same(outcome(lambda *a: evaluate(fitted, "main", *a), args), expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_follows_from_the_operator_is_listed(name: str) -> None:
    fitted = fit_operands(PROGRAMS[name].module())

    assert [d.condition for d in demands_of(fitted)] == [PROGRAMS[name].learned] * bool(
        PROGRAMS[name].learned
    )
    assert find_ill_formed(fitted) == []
    assert_structural_equal(fit_operands(fitted), fitted)
    assert_structural_equal(parse(print_module(fitted)), fitted)


@pytest.mark.parametrize("name", ["add", "matmul", "concat", "a shape", "channels", "windows"])
def test_it_runs_as_machine_code_and_refuses_the_same(name: str) -> None:
    module, random = PROGRAMS[name].module(), Random(name)
    executable = build(optimize(fit_operands(module)))
    before = VirtualMachine(build(module))
    machines = [VirtualMachine(executable, engine=e) for e in ("native", "interpreter")]

    assert "relax.run." not in executable.as_text()
    for _ in range(8):
        args = arguments(module, sizes_of(module, random), random)
        expected = outcome(before["main"], args)
        for machine in machines:
            assert_same(outcome(machine["main"], args), expected)


PLACES = {
    "a branch": """
    if c:
        y = R.sum(R.add(x, p))
    else:
        y = R.sum(p)
    return y
""",
    "behind a branch": """
    if c:
        n = R.sum(R.add(x, p))
    else:
        n = R.sum(p)
    y = R.add(n, R.sum(R.multiply(p, p)))
    return y
""",
    "dead code": """
    with R.dataflow():
        unused = R.add(x, p)
        y = R.where(c, R.sum(x), R.sum(p))
        R.output(y)
    return y
""",
    "beside what has other sizes": """
    with R.dataflow():
        a = R.concat([p, x], axis=0)
        b = R.add(p, x)
        y = R.add(R.sum(a), R.sum(b))
        R.output(y)
    return y
""",
}


@pytest.mark.parametrize("place", PLACES)
def test_a_check_holds_behind_itself_alone(place: str) -> None:
    module = parse(
        """
@R.function
def main(
    c: R.Tensor((), "bool"), x: R.Tensor(("s", 8), "float32"), t: R.Tensor((64, 8), "float32")
):
    s = T.int64()
    p = R.strided_slice(t, axes=[0], begin=[0], end=[s])"""
        + PLACES[place]
    )
    fitted = fit_operands(module)
    before, after = (VirtualMachine(build(m)) for m in (module, optimize(fitted)))

    assert list(map(str, demands_of(fitted))) == ["s <= 64 (add, p)"]
    for s, c in product((1, 3, 64, 65, 100), (True, False)):
        args = [np.bool_(c), np.ones((s, 8), np.float32), np.ones((64, 8), np.float32)]
        assert_same(outcome(after["main"], args), outcome(before["main"], args))


def test_the_check_stands_before_the_operator_and_says_what_that_says() -> None:
    fitted = fit_operands(PROGRAMS["add"].module())

    assert print_module(fitted).split("with R.dataflow():\n")[1] == (
        '            p: R.Tensor((1, min(64, s), 8), "float32") = R.strided_slice(\n'
        "                t, axes=[1], begin=[0], end=[s]\n"
        "            )\n"
        '            p1: R.Tensor((1, s, 8), "float32") = R.match_cast(\n'
        "                p,\n"
        '                R.Tensor((1, s, 8), "float32"),\n'
        '                refusal=\'R.add of R.Tensor(({b}, {s}, 8), "float32"), '
        'R.Tensor((1, {min(64, s)}, 8), "float32"): the shapes do not broadcast\',\n'
        "            )\n"
        '            y: R.Tensor((b, s, 8), "float32") = R.add(x, p1)\n'
        '            z: R.Tensor((b, s, 8), "float32") = R.exp(y)\n'
        "            R.output(z)\n"
        "        return z\n"
    )


def test_the_report_says_what_is_assumed() -> None:
    told = explain(fit_operands(PROGRAMS["add"].module()))

    assert list(map(str, told.demands)) == ["s <= 64 (add, p)"]
    assert told.as_dict()["demands"] == [
        {"function": "main", "condition": "s <= 64", "operator": "add", "operand": "p"}
    ]


def test_it_says_what_the_operator_would_say() -> None:
    machine = VirtualMachine(build(fit_operands(PROGRAMS["add"].module())))
    x, t = np.zeros((2, 70, 8), np.float32), np.zeros((1, 64, 8), np.float32)

    with pytest.raises(RunError) as refusal:
        machine["main"](x, t)

    assert str(refusal.value) == (
        'R.add of R.Tensor((2, 70, 8), "float32"), R.Tensor((1, 64, 8), "float32"): '
        "the shapes do not broadcast"
    )


def test_a_refusal_that_is_no_text_of_dimensions_does_not_read() -> None:
    text = print_module(fit_operands(PROGRAMS["add"].module())).replace("{b}", "{b +}")

    with pytest.raises(ScriptError, match=r"`b \+` is no dimension"):
        parse(text)
