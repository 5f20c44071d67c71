"""Random modules of the graph level: printed, read and printed again they are the same."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import call, call_packed, call_tir
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    Binding,
    BindingBlock,
    Block,
    Call,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    GlobalVar,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    const,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import infer
from relax_egraph.ir.struct_info import (
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.walk import has_effects
from relax_egraph.script import parse, print_module
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.stmt import PrimFunc, Seq

NAMES = ["x", "lv", "lv1", "gv", "_", "n", "cls", "a.b", "if", "x"]
N, M = dims.symbol("n"), dims.symbol("m")
DIMS: list[Dim] = [
    *(0, 1, 2, 3, N, M),
    dims.mul(N, 2),
    dims.add(N, M),
    dims.floordiv(dims.add(N, 3), 4),
    dims.mod(N, 8),
    dims.minimum(N, M),
    dims.mul(dims.mul(N, M), dims.sub(N, 1)),
]

LOOP = PrimFunc((Buffer("A", (N,), "float32"), Buffer("B", (N,), "float32")), Seq(()))
"""What the modules call by ``call_tir``; what it takes is not checked by script."""

shapes = st.lists(st.sampled_from(DIMS), max_size=3).map(tuple)
dtypes = st.sampled_from(["float32", "float64", "int64", "bool"])
tensors = st.builds(tensor, shapes, st.none() | dtypes) | st.builds(
    tensor, st.none(), st.none() | dtypes, st.integers(-1, 3)
)
infos: st.SearchStrategy[StructInfo] = st.recursive(
    tensors
    | shapes.map(lambda s: ShapeStructInfo(s, len(s)))
    | st.builds(ShapeStructInfo, st.none(), st.integers(-1, 3))
    | st.builds(PrimStructInfo, st.sampled_from(["int64", "int32"]), st.none())
    | st.sampled_from(DIMS).map(lambda d: PrimStructInfo("int64", d))
    | st.just(ObjectStructInfo()),
    lambda inner: st.lists(inner, max_size=2).map(lambda f: TupleStructInfo(tuple(f))),
    max_leaves=4,
)
strings = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=5)
scalars = st.sampled_from([0.1, -0.0, 1e30, float("inf"), float("nan"), 3])
attrs = st.dictionaries(
    strings,
    st.integers() | st.floats() | st.booleans() | strings | st.none() | st.tuples(st.integers()),
    max_size=2,
)


def is_marked(draw: st.DrawFn, body: Expr) -> bool:
    """A body without effects may be marked pure, or not."""
    return not has_effects(body) and draw(st.booleans())


@st.composite
def values(draw: st.DrawFn, variables: list[Var], *, pure: bool) -> Expr:
    """The right side of a binding, over variables of any kind."""
    known = [v for v in variables if getattr(v.struct_info, "dims", None) is not None]
    x = draw(st.sampled_from([*variables, *known, *known]))
    info = x.struct_info
    leaves = ["var", "scalar", "tensor", "shape", "prim", "string"]
    match draw(st.sampled_from([*leaves, *["op"] * 12])):
        case "var":
            return x
        case "scalar":
            return const(draw(scalars), "float32")
        case "tensor":
            return const(np.full(draw(st.sampled_from([(1,), (2, 0), (2, 2)])), 1.5, "float32"))
        case "shape":
            return ShapeExpr(draw(shapes))
        case "prim":
            return PrimValue(draw(st.sampled_from([*DIMS, -1])))
        case "string":
            return StringImm(draw(strings))
        case _:
            pass
    if isinstance(info, TupleStructInfo) and info.fields:
        return TupleGetItem(x, draw(st.integers(0, len(info.fields) - 1)))
    if not isinstance(info, TensorStructInfo):
        fields = draw(st.lists(st.sampled_from(variables), max_size=3))
        start, end = (PrimValue(draw(st.sampled_from(DIMS))) for _ in range(2))
        step = PrimValue(draw(st.sampled_from([1, -2])))
        places = draw(st.sampled_from([(start,), (start, end), (start, end, step)]))
        choices: list[Expr] = [
            Tuple((x, *fields)),
            call("arange", *places, dtype="int64"),
            call("full", ShapeExpr(draw(shapes)), const(draw(scalars), "float32")),
        ]
        return draw(st.sampled_from(choices))
    axes = tuple(draw(st.permutations(range(max(info.ndim, 0)))))
    floats = info.dtype in ("float32", "float64")
    choices = [
        call("abs", x),
        call("add", x, x),
        call("permute_dims", x, axes=axes if info.ndim >= 0 else None),
        call("astype", x, dtype=draw(dtypes)),
        call("flatten", x),
        call("shape_of", x),
        call("sum", x, axis=axes[:1] if info.ndim > 0 else None, keepdims=draw(st.booleans())),
        call_packed("f.g", [x, draw(st.sampled_from(variables))], [draw(infos)], pure=True),
        *([call("exp", x), call("multiply", x, const(2.5, info.dtype))] if floats else []),
        *([call("nn.softmax", x, axis=0)] if floats and info.ndim > 0 else []),
        *([call("concat", Tuple((x, x)), axis=0)] if info.ndim > 0 else []),
        *([call("triu", x), call("triu", x, PrimValue(-1))] if info.ndim > 1 else []),
    ]
    if info.dims is not None and info.dtype is not None:
        loop, s = GlobalVar("loop", LOOP.struct_info), ShapeExpr((N,))
        choices.append(call_tir(loop, [x, x], draw(st.sampled_from([info, [info, info]])), s))
        if not pure:
            choices.append(call_tir(loop, [x], info, inplace_indices=[0]))
            choices.append(call_tir(loop, [x, x], [info, info], s, inplace_indices=[-1, 0]))
    return draw(st.sampled_from(choices))


@st.composite
def bindings(draw: st.DrawFn, variables: list[Var], *, dataflow: bool) -> tuple[Binding, ...]:
    """Some bindings, over `variables` and those before; only what is given out is added to them."""
    visible = list(variables)
    made: list[Binding] = []
    for _ in range(draw(st.integers(0 if dataflow else 1, 4))):
        kind = DataflowVar if dataflow and draw(st.booleans()) else Var
        name = draw(st.sampled_from(NAMES))
        value = draw(values(visible, pure=dataflow))
        if draw(st.integers(0, 5)) == 0:
            info = draw(infos)
            var = kind(name, info)
            made.append(MatchCast(var, draw(st.sampled_from(visible)), info))
        else:
            var = kind(name, value.struct_info)
            made.append(VarBinding(var, value))
        visible.append(var)
        if kind is Var:
            variables.append(var)
    return tuple(made)


@st.composite
def sequences(draw: st.DrawFn, variables: list[Var], depth: int) -> SeqExpr:
    """Blocks of both kinds in turn, and a leaf as result."""
    blocks: list[Block] = []
    for _ in range(draw(st.integers(0, 3))):
        if draw(st.booleans()):
            blocks.append(DataflowBlock(draw(bindings(variables, dataflow=True))))
        elif blocks and isinstance(blocks[-1], BindingBlock):
            continue  # the text does not tell where one plain block ends and the next begins
        elif depth and draw(st.booleans()):
            blocks.append(BindingBlock((draw(conditionals(variables, depth - 1)),)))
        elif depth and draw(st.booleans()):
            blocks.append(BindingBlock(draw(closures(variables))))
        else:
            blocks.append(BindingBlock(draw(bindings(variables, dataflow=False))))
    return SeqExpr(tuple(blocks), draw(st.sampled_from(variables)))


@st.composite
def conditionals(draw: st.DrawFn, variables: list[Var], depth: int) -> VarBinding:
    branches = [draw(sequences(list(variables), depth)) for _ in range(2)]
    info = branches[0].struct_info
    if info != branches[1].struct_info:
        branches = [SeqExpr((), draw(st.sampled_from(variables)))] * 2
        info = branches[0].struct_info
    condition = const(draw(st.booleans()))
    var = Var(draw(st.sampled_from(NAMES)), info)
    variables.append(var)
    return VarBinding(var, If(condition, branches[0], branches[1], info))


@st.composite
def closures(draw: st.DrawFn, variables: list[Var]) -> tuple[VarBinding, VarBinding]:
    """A local function that sees `variables`, and a call of it."""
    args = draw(st.lists(st.sampled_from(variables), max_size=2))
    params = tuple(Var(draw(st.sampled_from(NAMES)), a.struct_info) for a in args)
    body = draw(sequences([*variables, *params], 0))
    local = Function(params, body, body.struct_info, is_marked(draw, body), draw(attrs))
    name = Var(draw(st.sampled_from(NAMES)), local.struct_info)
    bare = Call(name, tuple(args))
    applied = Call(name, tuple(args), struct_info=infer(bare))
    result = Var(draw(st.sampled_from(NAMES)), applied.struct_info)
    variables += [name, result]
    return VarBinding(name, local), VarBinding(result, applied)


@st.composite
def functions(draw: st.DrawFn) -> Function:
    params = [
        Var(draw(st.sampled_from(NAMES)), i)
        for i in draw(st.lists(infos | tensors, min_size=1, max_size=3))
    ]
    body = draw(sequences(list(params), 2))
    return Function(tuple(params), body, body.struct_info, is_marked(draw, body), draw(attrs))


modules = st.dictionaries(st.sampled_from(["main", "f", "g"]), functions(), max_size=2).map(
    lambda written: IRModule({"loop": LOOP, **written})
)


@settings(max_examples=150, deadline=None)
@given(modules)
def test_a_printed_module_is_read_back(module: IRModule) -> None:
    text = print_module(module, show_meta=True)

    read = parse(text)

    assert print_module(read, show_meta=True) == text
    assert_structural_equal(read, module)
