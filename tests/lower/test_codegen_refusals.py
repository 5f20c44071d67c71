"""What has no machine code is refused by name, before LLVM sees it."""

from collections.abc import Callable
from typing import Any

import pytest

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.module_text import PTR, Module
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.jit import compile_kernels, llvm_text
from relax_egraph.tir.expr import (
    Binary,
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
from relax_egraph.tir.stmt import (
    BlockAxis,
    For,
    IfThenElse,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    TensorIntrinsic,
    TirBlock,
)
from tests.support.kernels import buffer, loop, n

i = TirVar("i")
x, k, b = buffer("x", "float32", n), buffer("k", "int32", n), buffer("b", "bool", n)
zero, one = Imm(0, "int64"), Imm(1.0, "float32")


def of_value(value: TirExpr, dtype: str = "float32") -> Stmt:
    out = {"float32": x, "int32": k, "bool": b}[dtype]
    return loop(i, n, Store(out, (i,), value))


def wrong(make: Callable[..., Any], *args: Any) -> Any:
    """What the types of `make` do not allow."""
    return make(*args)


STATEMENTS: dict[str, Stmt] = {
    "store of int32 into x: needs float32": of_value(k[i]),
    "2 indices of x: needs 1": Store(x, (zero, zero), one),
    "an index of x is of int32: needs int64": Store(x, (Imm(0, "int32"),), one),
    "buffer y is not declared": Store(buffer("y", "float32", n), (zero,), one),
    "variable j is not in scope": Store(x, (TirVar("j"),), one),
    "m is no dimension of the parameters": Store(x, (DimSymbol("m"),), one),
    "the extent of loop i is of int32: needs int64": For(
        i, Imm(3, "int32"), "serial", Store(x, (zero,), one)
    ),
    "the variable i of a loop is of int32: needs int64": For(
        TirVar("i", "int32"), zero, "serial", Store(x, (zero,), one)
    ),
    "a condition is of float32: needs bool": IfThenElse(one, Store(x, (zero,), one)),
    "no tensor intrinsic is called gemm": TensorIntrinsic("gemm", (), ()),
    "the right operand of + is of int32: needs float32": of_value(Binary("+", x[i], k[i])),
    "int32 / int32 has no machine code": of_value(Binary("/", k[i], k[i]), "int32"),
    "bool - bool has no machine code": of_value(Binary("-", b[i], b[i]), "bool"),
    "int32 and int32 has no machine code": of_value(Binary("and", k[i], k[i]), "bool"),
    "float32 <=> float32 has no machine code": of_value(wrong(Binary, "<=>", x[i], x[i])),
    "the operand of not is of int32: needs bool": of_value(Not(k[i]), "bool"),
    "the condition of a select is of int32: needs bool": of_value(Select(k[i], x[i], x[i])),
    "the second value of a select is of int32: needs float32": of_value(Select(b[i], x[i], k[i])),
    "exp of 2 operands has no machine code": of_value(Intrinsic("exp", (x[i], x[i]))),
    "sinc of 1 operands has no machine code": of_value(Intrinsic("sinc", (x[i],))),
    "bitwise_not of float32 has no machine code": of_value(Intrinsic("bitwise_not", (x[i],))),
    "shift_left of bool has no machine code": of_value(
        Intrinsic("shift_left", (b[i], b[i])), "bool"
    ),
    "isnan of int32 has no machine code": of_value(Intrinsic("isnan", (k[i],)), "bool"),
    "exp of int32 has no machine code": of_value(Intrinsic("exp", (k[i],)), "int32"),
    "an operand of pow is of int32: needs float32": of_value(Intrinsic("pow", (x[i], k[i]))),
    f"a cast is of complex64: needs one of {', '.join(DTYPES)}": (
        of_value(Cast("float32", Cast("complex64", x[i])))
    ),
    "1.5 is no literal of int32": of_value(Imm(1.5, "int32"), "int32"),
    "nan is no literal of int32": of_value(Imm(float("nan"), "int32"), "int32"),
    "buffer t is declared twice": TirBlock(
        "t", (), Store(x, (zero,), one), allocs=(buffer("t", "int8", 1),) * 2
    ),
    "buffer t has the unknown dimension q": TirBlock(
        "t", (), Store(x, (zero,), one), allocs=(Buffer("t", (dims.symbol("q"),), "int8"),)
    ),
    "buffer t has a dimension of -1": TirBlock(
        "t", (), Store(x, (zero,), one), allocs=(Buffer("t", (-1,), "int8"),)
    ),
}


@pytest.mark.parametrize("message", STATEMENTS)
def test_a_wrong_statement_is_refused(message: str) -> None:
    function = PrimFunc((k, b, x), STATEMENTS[message])

    with pytest.raises(NotLowerable) as caught:
        llvm_text(function)

    assert str(caught.value) == message


def test_a_variable_of_another_loop_is_refused_where_it_is_shared() -> None:
    shared = x[i]
    inside = loop(i, n, Store(x, (i,), shared))
    outside = Store(x, (zero,), shared)

    with pytest.raises(NotLowerable, match=r"^variable i is not in scope$"):
        llvm_text(PrimFunc((x,), Seq((inside, outside))))


def test_statements_nested_too_deeply_are_refused() -> None:
    body: Stmt = Store(x, (zero,), one)
    for _ in range(5000):
        body = TirBlock("b", (), body)

    with pytest.raises(NotLowerable, match=r"^statements nest deeper than 100$"):
        llvm_text(PrimFunc((x,), body))


def chain(length: int) -> TirExpr:
    value: TirExpr = x[i]
    for _ in range(length):
        value = Binary("+", value, one)
    return value


def test_deep_expressions_are_compiled() -> None:
    text = llvm_text(PrimFunc((x,), of_value(chain(450))))

    assert text.count("fadd") >= 450


def test_expressions_that_are_too_deep_are_refused() -> None:
    with pytest.raises(NotLowerable, match=r"^an expression nests deeper than 500$"):
        llvm_text(PrimFunc((x,), of_value(chain(3000))))


def test_the_message_names_the_function() -> None:
    function = PrimFunc((k, b, x), of_value(k[i]))

    with pytest.raises(NotLowerable, match=r"^fused: store of int32 into x: needs float32$"):
        compile_kernels({"fused": function})


def test_an_intrinsic_called_with_other_arguments_is_refused() -> None:
    def clear(module: Module, target: Target) -> None:
        Function(module, "clear", (PTR,)).finish()

    call = TensorIntrinsic("clear", ((x, (zero,)),), (zero,))

    with pytest.raises(NotLowerable) as caught:
        compile_kernels({"f": PrimFunc((x,), call)}, intrinsics={"clear": clear})

    assert str(caught.value) == "f: clear of 1 buffers and 1 scalars: takes (ptr)"


def test_a_load_of_the_wrong_rank_is_refused_inside_of_an_index() -> None:
    at = BufferLoad(buffer("at", "int64", n, n), (zero,))
    block = TirBlock("b", (BlockAxis(i, zero, "spatial", at),), Store(x, (i,), one))

    with pytest.raises(NotLowerable, match=r"^1 indices of at: needs 2$"):
        llvm_text(PrimFunc((at.buffer, x), block))
