"""Control flow of random programs: conditionals and calls of functions."""

from collections.abc import Sequence

from relax_egraph.errors import IllTyped, RunError
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Call, Expr, Function, GlobalVar, If, SeqExpr, Var
from relax_egraph.ir.struct_info import tensor
from tests.support.random_loop_calls import by_numpy
from tests.support.random_steps import STEPS
from tests.support.random_writer import PACKED, Array, Rejected, Writer

LAYER = "layer"


def take_steps(w: Writer, most: int) -> None:
    """Take at least two steps; those that do not fit are omitted."""
    weights, steps = zip(*STEPS, strict=True)
    for step in w.random.choices(steps, weights, k=w.random.randint(2, most)):
        try:
            step(w)
        except (Rejected, IllTyped):
            continue


def conditional(w: Writer) -> Expr:
    """Emit a conditional; raises `Rejected` if there is no condition."""
    truths = [v for v in w.known if v.struct_info == tensor((), "bool")]
    cond = w.choice(truths) if truths else w.op("max", w.tensor("b"))
    x = w.tensor()
    (true, if_true), (false, if_false) = (_branch(w, x) for _ in range(2))
    value = If(cond, true, false, x.struct_info)
    return w.enter(w.builder.emit(value), if_true if w.sample(cond) else if_false)


def _branch(w: Writer, x: Expr) -> tuple[SeqExpr, Array]:
    """A sequence that computes a value of the type of `x`, and its sample."""
    name = f"branch{len(w.builder.get().functions)}"
    with w.apart(), w.builder.function(name):
        with w.builder.dataflow():
            take_steps(w, 5)
            like = [v for v in w.known if v.struct_info == x.struct_info]
            result = w.op("maximum", x, w.choice(like))
            seen = w.builder.emit_output(result)
        w.builder.emit_func_output(seen)
    function = w.builder.get()[name]
    assert isinstance(function, Function)
    return function.body, w.sample(result)


def layer(w: Writer, param: Var, sample: Array) -> None:
    """Add a private function of one tensor to the module."""
    with w.apart(), w.builder.function(LAYER, [param], {"private": True}):
        w.enter(param, sample)
        with w.builder.dataflow():
            take_steps(w, 6)
            outputs = [w.builder.emit_output(v) for v in w.unread()[-1:] or [param]]
        w.builder.emit_func_output(outputs[0])


def call_of_layer(w: Writer) -> Expr:
    """Emit a call of the private function, if there is one."""
    module = w.builder.get()
    if LAYER not in module:
        raise Rejected
    function = module[LAYER]
    assert isinstance(function, Function)
    fit = [v for v in w.known if v.struct_info == function.params[0].struct_info]
    if not fit:
        raise Rejected
    x = w.choice(fit)
    value = Call(GlobalVar(LAYER, function.struct_info), (x,), struct_info=function.ret_struct_info)
    try:
        result = evaluate(module, LAYER, w.sample(x), packed=PACKED, prim_func=by_numpy)
    except RunError:  # it refuses this tensor
        raise Rejected from None
    return w.enter(w.builder.emit(value), result)


def without_branches(names: Sequence[str]) -> list[str]:
    """The functions of a program, without the branches that were written as functions."""
    return [name for name in names if not name.startswith("branch")]
