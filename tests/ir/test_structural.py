"""Programs are equal up to names, and the first difference is said with its place."""

from collections.abc import Callable

import numpy as np
import pytest

from relax_egraph.errors import NotStructurallyEqual, Span
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder, call, call_packed, call_tir
from relax_egraph.ir.dims import Dim, symbol
from relax_egraph.ir.expr import (
    Attr,
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    GlobalVar,
    If,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    const,
    shape,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import StructInfo, tensor
from relax_egraph.ir.structural import assert_structural_equal, structural_equal
from relax_egraph.tir.expr import Buffer, DimSymbol, Imm, TirExpr, TirVar
from relax_egraph.tir.stmt import BlockAxis, For, LoopKind, PrimFunc, Seq, Stmt, Store, TirBlock


def program(
    *,
    symbols: tuple[str, str] = ("n", "m"),
    names: str = "xyz",
    dtype: str = "float32",
    op: str = "add",
    swapped: bool = False,
    axis: Attr = 1,
    factor: float = 2.0,
    attrs: dict[str, Attr] | None = None,
    more: bool = False,
    dataflow: bool = True,
) -> IRModule:
    """``sum(x + y) * factor``, in as many variations as there are parameters."""
    n, m = map(symbol, symbols)
    x, y = Var(names[0], tensor((n, m), dtype)), Var(names[1], tensor((n, m), dtype))
    first = call(op, *((y, x) if swapped else (x, y)))
    local = DataflowVar if dataflow else Var
    a = local(names[2], first.struct_info)
    second = call("sum", a, axis=axis)
    b = local(f"{names[2]}1", second.struct_info)
    third = call("multiply", b, const(factor, dtype))
    c = Var("out", third.struct_info)
    bindings = [VarBinding(a, first), VarBinding(b, second), VarBinding(c, third)]
    if more:
        bindings.append(VarBinding(Var("more", c.struct_info), call("exp", c)))
    block = (DataflowBlock if dataflow else BindingBlock)(tuple(bindings))
    function = Function((x, y), SeqExpr((block,), c), c.struct_info, attrs=attrs or {})
    return IRModule({"main": function})


def difference(a: object, b: object) -> str:
    with pytest.raises(NotStructurallyEqual) as found:
        assert_structural_equal(a, b)  # pyright: ignore[reportArgumentType]  # what the cases hold
    return str(found.value)


# --- equal ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        program(),
        program(names="abc"),
        program(names="yxw"),
        program(symbols=("m", "n")),
        program(symbols=("batch", "width")),
        program(axis=(1,)),
    ],
)
def test_names_of_variables_and_symbols_do_not_matter(other: IRModule) -> None:
    assert structural_equal(program(), other)
    assert structural_equal(other, program())


def test_defaults_of_attributes_and_spans_do_not_matter() -> None:
    x = Var("x", tensor((2,), "float32"))
    plain = Call(OPS["sum"], (x,))
    spanned = Call(OPS["sum"], (x,), {"keepdims": False}, span=Span("f", 1, 2))

    assert structural_equal(plain, spanned)


def test_the_order_of_functions_does_not_matter() -> None:
    f, g = program()["main"], program(op="subtract")["main"]

    assert structural_equal(IRModule({"f": f, "g": g}), IRModule({"g": g, "f": f}))


def test_symbols_are_renamed_in_each_function_on_its_own() -> None:
    one = IRModule({"f": program()["main"], "g": program()["main"]})
    other = IRModule(
        {"f": program(symbols=("a", "b"))["main"], "g": program(symbols=("b", "a"))["main"]}
    )

    assert structural_equal(one, other)


def test_nan_equals_nan() -> None:
    assert structural_equal(const([np.nan, 1.0], "float32"), const([np.nan, 1.0], "float32"))


def casting(first: Dim, second: Dim, info: StructInfo) -> Function:
    """A function whose symbols first stand inside of sums and products."""
    x = Var("x", tensor((first, second), "float32"))
    y = Var("y", info)
    return Function((x,), SeqExpr((BindingBlock((MatchCast(y, x, info),)),), y), info)


def test_symbols_inside_of_dimensions_are_paired_by_what_follows() -> None:
    n, m, a, b = map(symbol, "nmab")
    one = casting(dims.add(n, m), dims.mul(n, m), tensor((n, m), "float32"))

    same = casting(dims.add(a, b), dims.mul(a, b), tensor((b, a), "float32"))
    different = casting(dims.add(a, b), dims.mul(a, a), tensor((b, a), "float32"))

    assert structural_equal(one, same)
    assert not structural_equal(one, different)


def test_symbols_that_never_stand_alone_are_paired_if_they_can_be() -> None:
    n, m, a, b = map(symbol, "nmab")
    info = tensor(None, "float32", 2)

    one = casting(dims.add(dims.mul(n, 2), m), 3, info)

    assert structural_equal(one, casting(dims.add(a, dims.mul(b, 2)), 3, info))
    assert not structural_equal(one, casting(dims.add(a, dims.mul(b, 3)), 3, info))


# --- different --------------------------------------------------------------------------

DIFFERENT: list[tuple[IRModule, str]] = [
    (
        program(swapped=True),
        "main: binding 0 (z): operand 0\n"
        '  left:  x: R.Tensor((n, m), "float32")\n'
        '  right: y: R.Tensor((n, m), "float32")',
    ),
    (
        program(op="subtract"),
        "main: binding 0 (z)\n  left:  R.add(x, y)\n  right: R.subtract(x, y)",
    ),
    (
        program(dtype="float64"),
        "main: parameter 0: struct info: dtype\n  left:  'float32'\n  right: 'float64'",
    ),
    (
        program(symbols=("n", "n")),
        "main: parameter 0: struct info: shape: values: item 1\n  left:  m\n  right: n",
    ),
    (
        program(axis=0),
        "main: binding 1 (z1): attribute axis: item 0\n  left:  1\n  right: 0",
    ),
    (
        program(factor=3.0),
        "main: binding 2 (out): operand 1\n"
        '  left:  R.const(2.0, "float32")\n'
        '  right: R.const(3.0, "float32")',
    ),
    (
        program(attrs={"primitive": True}),
        "main: attribute primitive\n  left:  nothing\n  right: True",
    ),
    (
        program(more=True),
        "main: binding 3 (more)\n  left:  nothing\n  right: more = R.exp(out)",
    ),
    (
        program(dataflow=False),
        "main: block 0\n  left:  a dataflow block of 3 bindings\n  right: a block of 3 bindings",
    ),
    (
        IRModule({**program().functions, "other": program()["main"]}),
        "other\n"
        "  left:  nothing\n"
        '  right: a function, R.Callable((R.Tensor((n, m), "float32"), '
        'R.Tensor((n, m), "float32")), R.Tensor((n,), "float32"), True)',
    ),
]


@pytest.mark.parametrize(("other", "message"), DIFFERENT)
def test_a_difference_is_found_and_placed(other: IRModule, message: str) -> None:
    assert difference(program(), other) == message


X = Var("x", tensor((2, 3), "float32"))
Y = Var("y", tensor((2, 3), "float32"))
INFO = tensor((2, 3), "float32")


def one_binding(value: Expr, info: StructInfo = INFO) -> Function:
    var = Var("v", info)
    return Function((X, Y), SeqExpr((BindingBlock((VarBinding(var, value),)),), var), INFO)


def branching(cond: Expr, then: Expr) -> Function:
    return one_binding(If(cond, SeqExpr((), then), SeqExpr((), Y), INFO))


COND = Var("c", tensor((), "bool"))

EXPRESSIONS: list[tuple[Callable[[], object], Callable[[], object], str]] = [
    (
        lambda: const(1.0),
        lambda: const(1.0, "float64"),
        'the expressions differ\n  left:  R.const(1.0, "float32")\n'
        '  right: R.const(1.0, "float64")',
    ),
    (
        lambda: const(0.0),
        lambda: const(-0.0),
        'the expressions differ\n  left:  R.const(0.0, "float32")\n'
        '  right: R.const(-0.0, "float32")',
    ),
    (
        lambda: shape([2, 3]),
        lambda: shape([2]),
        "values: item 1\n  left:  3\n  right: nothing",
    ),
    (
        lambda: X,
        lambda: const(1),
        "the expressions differ\n"
        '  left:  x: R.Tensor((2, 3), "float32")\n'
        '  right: R.const(1, "int32")',
    ),
    (
        lambda: one_binding(Tuple((X,))),
        lambda: one_binding(Tuple((Y,))),
        "binding 0 (v): field 0\n"
        '  left:  x: R.Tensor((2, 3), "float32")\n'
        '  right: y: R.Tensor((2, 3), "float32")',
    ),
    (
        lambda: one_binding(TupleGetItem(X, 0)),
        lambda: one_binding(TupleGetItem(X, 1)),
        "binding 0 (v): index\n  left:  0\n  right: 1",
    ),
    (
        lambda: one_binding(X),
        lambda: one_binding(X, tensor((2, 3), None)),
        "binding 0 (v): variable: struct info: dtype\n  left:  'float32'\n  right: nothing",
    ),
    (
        lambda: one_binding(Call(GlobalVar("f"), (X,))),
        lambda: one_binding(Call(GlobalVar("g"), (X,))),
        "binding 0 (v): callee: name\n  left:  'f'\n  right: 'g'",
    ),
    (
        lambda: one_binding(call_packed("f", [X], [INFO])),
        lambda: one_binding(call_packed("g", [X], [INFO])),
        "binding 0 (v): operand 0: name\n  left:  'f'\n  right: 'g'",
    ),
    (
        lambda: one_binding(call_tir(GlobalVar("f"), [X], INFO)),
        lambda: one_binding(call_tir(GlobalVar("f"), [X, Y], INFO)),
        "binding 0 (v): operand 1: field 1\n"
        "  left:  nothing\n"
        '  right: y: R.Tensor((2, 3), "float32")',
    ),
    (
        lambda: one_binding(call_packed("f", [X], [INFO])),
        lambda: one_binding(call_packed("f", [X], [tensor((2, 4), "float32")])),
        "binding 0 (v): sinfo_args 0: shape: values: item 1\n  left:  3\n  right: 4",
    ),
    (
        lambda: branching(COND, X),
        lambda: branching(COND, Y),
        "binding 0 (v): true branch: result\n"
        '  left:  x: R.Tensor((2, 3), "float32")\n'
        '  right: y: R.Tensor((2, 3), "float32")',
    ),
    (
        lambda: Function((), SeqExpr((), const(1)), INFO),
        lambda: Function((), SeqExpr((), const(1)), INFO, is_pure=False),
        "purity\n  left:  True\n  right: False",
    ),
]


@pytest.mark.parametrize(("a", "b", "message"), EXPRESSIONS)
def test_expressions_differ(a: Callable[[], object], b: Callable[[], object], message: str) -> None:
    assert difference(a(), b()) == message


def test_one_variable_is_not_two() -> None:
    twice = one_binding(call("add", X, X))
    once = one_binding(call("add", X, Y))

    assert not structural_equal(twice, once)
    assert not structural_equal(once, twice)
    assert not structural_equal(call("add", X, Y), call("add", X, X))
    assert not structural_equal(call("add", X, X), call("add", X, Y))


# --- loop functions ---------------------------------------------------------------------


def loops(
    *,
    size: str = "n",
    index: str = "i",
    kind: LoopKind = "serial",
    step: int = 1,
    source: int = 0,
    scalars: tuple[str, ...] = (),
) -> PrimFunc:
    """``c[i] = a[i] + step``, of a and b."""
    n = symbol(size)
    a, b, c = (Buffer(name, (n,), "int64") for name in (f"a_{index}", "b", "c"))
    i, v = TirVar(index), TirVar(f"v{index}")
    element: TirExpr = (a, b)[source][v] + Imm(step, "int64")
    body: Stmt = TirBlock(
        "c", (BlockAxis(v, DimSymbol(size), "spatial", i),), Store(c, (v,), element)
    )
    return PrimFunc((a, b, c), For(i, DimSymbol(size), kind, body), scalars=scalars)


def test_loop_functions_are_equal_up_to_names() -> None:
    assert_structural_equal(loops(), loops(size="m", index="j"))
    assert_structural_equal(loops(scalars=("k", "l")), loops(scalars=("l", "k")))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (loops(kind="parallel"), "f: body: kind\n  left:  'serial'\n  right: 'parallel'"),
        (
            loops(step=2),
            "f: body: body: body: value: b: value\n  left:  1\n  right: 2",
        ),
        (loops(source=1), "f: body: body: body: value: a: buffer\n  left:  a_i\n  right: b"),
        (loops(scalars=("k",)), "f: scalars\n  left:  ()\n  right: ('k',)"),
        (
            PrimFunc(loops().params, Seq(())),
            "f: body\n"
            "  left:  For(i, DimSymbol('n'), 'serial', TirBlock('c', (BlockAxis(vi, "
            "DimSymbol('n'), 'spatial', i),), Store(c, (vi,), Binary('+', "
            "BufferLoad(a_i, (vi,)), Imm(1, 'int …\n"
            "  right: Seq(())",
        ),
    ],
)
def test_loop_functions_differ(other: PrimFunc, message: str) -> None:
    found = difference(IRModule({"f": loops()}), IRModule({"f": other}))

    assert found == message


def test_the_module_is_equal_to_itself_rebuilt() -> None:
    bb = BlockBuilder()
    module = program()
    bb.add_func(module["main"], "main")

    assert structural_equal(module, bb.get())
