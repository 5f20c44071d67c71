"""Random loop functions: printed, read and printed again they are the same, node for node."""

from dataclasses import dataclass, field
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.ir import dims
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.script import parse, print_module
from relax_egraph.tir.expr import (
    LOGICAL,
    Binary,
    BinaryKind,
    Buffer,
    BufferLoad,
    Cast,
    DimSymbol,
    Imm,
    Intrinsic,
    Not,
    Select,
    TirExpr,
    TirVar,
)
from relax_egraph.tir.functions import INTRINSICS, PREDICATES, takes
from relax_egraph.tir.stmt import (
    BlockAxis,
    For,
    IfThenElse,
    LoopKind,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    TensorIntrinsic,
    TirBlock,
    seq,
)

N = dims.symbol("n")
SHAPES = [(), (4,), (N,), (3, N), (dims.mul(N, 2), dims.floordiv(N, 4))]
NAMES = ["A", "i", "i", "v_i", "n", "T", "k.0"]
DTYPES = ["int64", "float32", "bool", "int32", "float64"]
ARITHMETIC: list[BinaryKind] = ["+", "-", "*", "/", "//", "%", "min", "max"]
LOGIC: list[BinaryKind] = ["<", "<=", ">", ">=", "==", "!=", "and", "or"]
AXES: list[Literal["spatial", "reduce"]] = ["spatial", "reduce"]
LOOPS: list[LoopKind] = ["serial", "serial", "parallel", "vectorized", "unrolled"]


@dataclass
class Scope:
    """What may be mentioned: variables, buffers, and the extents of the loops around."""

    variables: list[TirVar] = field(default_factory=list[TirVar])
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    extents: dict[TirVar, TirExpr] = field(default_factory=dict[TirVar, TirExpr])

    def inner(self) -> "Scope":
        return Scope(list(self.variables), list(self.buffers), dict(self.extents))


@st.composite
def immediates(draw: st.DrawFn, dtype: str) -> Imm:
    if dtype == "bool":
        return Imm(draw(st.integers(0, 1)), dtype)
    if dtype.startswith("float"):
        return Imm(draw(st.floats()), dtype)
    return Imm(draw(st.integers(-9, 9)), dtype)


@st.composite
def expressions(draw: st.DrawFn, scope: Scope, dtype: str, depth: int = 3) -> TirExpr:
    leaves: list[TirExpr] = [draw(immediates(dtype))]
    if dtype == "int64":
        leaves += [DimSymbol("n"), DimSymbol("m"), *scope.variables]
    if depth == 0:
        return draw(st.sampled_from(leaves))
    kinds = ["leaf", "load", "binary", "binary", "not", "call", "select", "cast"]
    kind = draw(st.sampled_from(kinds))
    loads = [b for b in scope.buffers if b.dtype == dtype]

    def operand(of: str = dtype) -> TirExpr:
        return draw(expressions(scope, of, depth - 1))

    match kind:
        case "load" if loads:
            return draw(elements(draw(st.sampled_from(loads)), scope, depth - 1))
        case "binary" if dtype == "bool":
            choice = draw(st.sampled_from(LOGIC))
            of = "bool" if choice in LOGICAL else draw(st.sampled_from(DTYPES))
            return Binary(choice, operand(of), operand(of))
        case "binary":
            return Binary(draw(st.sampled_from(ARITHMETIC)), operand(), operand())
        case "not" if dtype == "bool":
            return Not(operand())
        case "call" if dtype == "bool":
            name = draw(st.sampled_from(sorted(PREDICATES)))
            return Intrinsic(name, (operand("float32"),))
        case "call":
            known = sorted(n for n in INTRINSICS if takes(n, dtype) and n not in PREDICATES)
            name = draw(st.sampled_from(known))
            return Intrinsic(name, tuple(operand() for _ in range(INTRINSICS[name])))
        case "select":
            return Select(operand("bool"), operand(), operand(), draw(st.booleans()))
        case "cast":
            return Cast(dtype, operand(draw(st.sampled_from(DTYPES))))
        case _:
            return draw(st.sampled_from(leaves))


@st.composite
def elements(draw: st.DrawFn, buffer: Buffer, scope: Scope, depth: int = 1) -> BufferLoad:
    indices = [draw(expressions(scope, "int64", depth)) for _ in buffer.shape]
    return BufferLoad(buffer, tuple(indices))


@st.composite
def buffers(draw: st.DrawFn) -> Buffer:
    name, shape = draw(st.sampled_from(NAMES)), draw(st.sampled_from(SHAPES))
    return Buffer(name, shape, draw(st.sampled_from(DTYPES)))


@st.composite
def local_buffers(draw: st.DrawFn) -> Buffer:
    return Buffer(draw(st.sampled_from(NAMES)), (4,), "float32", "local")


@st.composite
def statements(draw: st.DrawFn, scope: Scope, depth: int) -> Stmt:
    simple = ["store", "intrinsic"]
    kind = draw(st.sampled_from(simple if depth == 0 else [*simple, "for", "if", "block", "seq"]))
    match kind:
        case "for":
            inner = scope.inner()
            variable = TirVar(draw(st.sampled_from(NAMES)))
            extent = draw(expressions(scope, "int64", 1))
            inner.variables.append(variable)
            inner.extents[variable] = extent
            body = draw(statements(inner, depth - 1))
            return For(variable, extent, draw(st.sampled_from(LOOPS)), body)
        case "if":
            condition = draw(expressions(scope, "bool", 2))
            otherwise = draw(st.none() | statements(scope, depth - 1))
            return IfThenElse(condition, draw(statements(scope, depth - 1)), otherwise)
        case "block":
            return draw(blocks(scope, depth - 1))
        case "seq":
            parts = [draw(statements(scope, depth - 1)) for _ in range(draw(st.integers(0, 3)))]
            return seq(*parts) if parts else Seq(())
        case "intrinsic":
            places = [draw(elements(b, scope)) for b in scope.buffers[:2]]
            scalars = tuple(draw(st.lists(expressions(scope, "int64", 1), max_size=9)))
            return TensorIntrinsic(
                "gemm_tile", tuple((p.buffer, p.indices) for p in places), scalars
            )
        case _:
            buffer = draw(st.sampled_from(scope.buffers))
            place = draw(elements(buffer, scope))
            return Store(buffer, place.indices, draw(expressions(scope, buffer.dtype)))


@st.composite
def blocks(draw: st.DrawFn, scope: Scope, depth: int) -> TirBlock:
    inner = scope.inner()
    axes: list[BlockAxis] = []
    remapped = draw(st.booleans())
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(AXES))
        binding = draw(expressions(scope, "int64", 1))
        extent = draw(expressions(scope, "int64", 1))
        if remapped and scope.extents:
            binding = draw(st.sampled_from(list(scope.extents)))
            extent = scope.extents[binding]
        axes.append(BlockAxis(TirVar(draw(st.sampled_from(NAMES))), extent, kind, binding))
    inner.variables += [axis.var for axis in axes]
    allocs = draw(st.lists(local_buffers(), max_size=2))
    inner.buffers += allocs
    init = draw(st.none() | statements(inner, 0))
    body = draw(statements(inner, depth))
    return TirBlock(draw(st.sampled_from(["b", 'a"b', ""])), tuple(axes), body, init, tuple(allocs))


@st.composite
def prim_funcs(draw: st.DrawFn) -> PrimFunc:
    params = [Buffer("A", (N,), "float32"), *draw(st.lists(buffers(), max_size=2))]
    allocs = draw(st.lists(buffers(), max_size=2))
    body = draw(statements(Scope(buffers=[*params, *allocs]), 4))
    outputs = draw(st.integers(0, len(params)))
    attrs = draw(st.sampled_from([{}, {"private": True, "schedule": "rows"}]))
    return PrimFunc(tuple(params), body, outputs, ("m",), tuple(allocs), attrs)


@settings(max_examples=200, deadline=None)
@given(prim_funcs())
def test_a_printed_loop_function_is_read_back(function: PrimFunc) -> None:
    module = IRModule({"f": function})
    text = print_module(module)

    read = parse(text)

    assert print_module(read) == text
    assert_structural_equal(read, module)
