"""A module of one function to break laws in, with functions that it may call."""

from relax_egraph.ir.block_builder import call
from relax_egraph.ir.dims import symbol
from relax_egraph.ir.expr import (
    Binding,
    BindingBlock,
    Block,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    GlobalVar,
    MatchCast,
    SeqExpr,
    Tuple,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.struct_info import (
    StructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.stmt import PrimFunc, Seq

n, m = symbol("n"), symbol("m")
INFO = tensor((n, 4), "float32")
BOOL = tensor((), "bool")
X = Var("x", INFO)
COND = Var("cond", BOOL)
PAIR = Var("pair", TupleStructInfo((INFO, INFO)))


def bind(name: str, value: Expr, info: StructInfo = INFO) -> VarBinding:
    return VarBinding(Var(name, info), value)


def local(name: str, value: Expr, info: StructInfo = INFO) -> VarBinding:
    return VarBinding(DataflowVar(name, info), value)


def main(
    *blocks: Block | Binding,
    result: Expr = X,
    params: tuple[Var, ...] = (X, COND, PAIR),
    ret: StructInfo | None = None,
    pure: bool = True,
) -> IRModule:
    """A function of blocks, with single bindings as blocks, beside `helper` and `loops`."""
    wrapped = [BindingBlock((b,)) if isinstance(b, VarBinding | MatchCast) else b for b in blocks]
    body = SeqExpr(tuple(wrapped), result)
    function = Function(params, body, ret or result.struct_info, is_pure=pure)
    return IRModule({"main": function, **LIBRARY})


def flow(*bindings: Binding) -> DataflowBlock:
    return DataflowBlock(bindings)


H = Var("h", tensor((m, m), "float32"))
LOOPS = PrimFunc(
    (Buffer("a", (n, m), "float32"), Buffer("b", (m,), "float32")), Seq(()), scalars=("k",)
)
LIBRARY: dict[str, BaseFunc] = {
    "helper": Function((H,), SeqExpr((), H), H.struct_info),
    "loud": Function((X,), SeqExpr((), X), INFO, is_pure=False),
    "loops": LOOPS,
}
HELPER = GlobalVar("helper", LIBRARY["helper"].struct_info)

Y, LOST = Var("y", INFO), Var("lost", INFO)
LV = DataflowVar("lv", INFO)
EXP = call("exp", X)
SEQ = SeqExpr((BindingBlock((VarBinding(LOST, EXP),)),), LOST)
OUT = tensor((4,), "float32")
IN = Tuple((X,))
