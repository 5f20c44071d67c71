"""Checks of the laws of the IR: scopes of variables and symbols, normal form, purity.

`call_rules` checks the arguments of calls.
"""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field

from relax_egraph.errors import IllFormed
from relax_egraph.ir.agreement import bare_symbols, free_symbols, relation
from relax_egraph.ir.call_rules import breaches_of_call, callee_text, is_pure_in
from relax_egraph.ir.depth import deep
from relax_egraph.ir.expr import (
    Binding,
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
    Tuple,
    TupleGetItem,
    Var,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import (
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.ir.templates import extents_of
from relax_egraph.ir.walk import is_leaf, variables_of


def assert_well_formed(module: IRModule) -> None:
    """Raise `IllFormed`, listing every breach, if `module` breaks a law of the IR."""
    if breaches := find_ill_formed(module):
        raise IllFormed("\n".join(breaches))


@deep(IllFormed, "the module is nested too deeply")
def find_ill_formed(module: IRModule) -> list[str]:
    """Every breach of a law of the IR in the relax functions of `module`, in order.

    The laws: a variable is defined once and before its use, and a dataflow variable is used
    in its block only; a symbol is defined by a parameter or a ``match_cast`` that has it as a whole
    dimension; operands are leaves; a dataflow block has no effects and no control flow, a
    function that is marked pure no effects;
    callees exist and accept their arguments; no struct info contradicts a known one.
    """
    breaches: list[str] = []
    for name, function in module.relax_functions():
        checker = _Checker(module, name, set(variables_of(function)))
        checker.function(function)
        breaches += checker.breaches
    return breaches


@dataclass(slots=True)
class _Checker:
    """The scopes of one function; `at` is the current binding, or part of the function."""

    module: IRModule
    name: str
    anywhere: set[Var]
    at: str = "result"
    breaches: list[str] = field(default_factory=list[str])
    defined: set[Var] = field(default_factory=set[Var])
    visible: set[Var] = field(default_factory=set[Var])
    symbols: set[str] = field(default_factory=set[str])
    in_dataflow: bool = False
    marked_pure: bool = False

    def report(self, breach: str) -> None:
        self.breaches.append(f"{self.name}: {self.at} {breach}")

    @contextmanager
    def scope(self) -> Generator[None]:
        """Definitions inside are not visible after it."""
        kept = self.visible, self.symbols, self.in_dataflow, self.marked_pure
        self.visible, self.symbols = set(self.visible), set(self.symbols)
        yield
        self.visible, self.symbols, self.in_dataflow, self.marked_pure = kept

    # --- functions, blocks, bindings ----------------------------------------------------

    def function(self, function: Function) -> None:
        with self.scope():
            self.in_dataflow, self.marked_pure = False, function.is_pure
            for p in function.params:
                self.symbols |= bare_symbols(p.struct_info)
            for p in function.params:
                self.at = f"parameter {p.name}"
                self.struct_info(p.struct_info)
                self.define(p)
            self.sequence(function.body)
            self.at = "result"
            self.struct_info(function.ret_struct_info)
            self.agrees(function.ret_struct_info, function.body.struct_info)

    def sequence(self, seq: SeqExpr) -> None:
        for block in seq.blocks:
            self.in_dataflow = isinstance(block, DataflowBlock)
            for binding in block.bindings:
                self.binding(binding)
            self.visible -= {b.var for b in block.bindings if isinstance(b.var, DataflowVar)}
            self.in_dataflow = False
        self.at = "result"
        if not is_leaf(seq.body):
            self.report(f"is {_kind(seq.body)}: bind it to a variable first")
        self.expression(seq.body)

    def binding(self, binding: Binding) -> None:
        var = binding.var
        self.at = var.name
        if isinstance(binding.value, Function):
            self.visible.add(var)  # for recursion
        self.value(binding.value)
        self.at = var.name
        if isinstance(binding, MatchCast):
            self.symbols |= bare_symbols(binding.struct_info)
            self.struct_info(binding.struct_info)
            self.struct_info(ShapeStructInfo(extents_of(binding.refusal)))
            self.agrees(binding.struct_info, binding.value.struct_info)
            self.agrees(var.struct_info, binding.struct_info)
        else:
            self.struct_info(var.struct_info)
            self.agrees(var.struct_info, _known(binding.value))
        if isinstance(var, DataflowVar) and not self.in_dataflow:
            self.report("is a dataflow variable, bound outside of a dataflow block")
        self.define(var)

    def define(self, var: Var) -> None:
        if var in self.defined:
            self.report("is defined twice")
        self.defined.add(var)
        self.visible.add(var)

    # --- expressions --------------------------------------------------------------------

    def value(self, value: Expr) -> None:
        """Check the right side of a binding: one computation on leaves."""
        match value:
            case Call():
                self.operands(callee_text(value.op), value.args)
            case Tuple(fields=fields):
                self.operands("the tuple", fields)
            case TupleGetItem(tuple_value=inner):
                self.operands("the projection", (inner,))
            case If(cond=cond):
                self.operands("the condition", (cond,))
            case SeqExpr():
                self.report("is a sequence: put its bindings into the block")
            case _:
                pass
        self.expression(value)

    def operands(self, of: str, operands: Iterable[Expr]) -> None:
        for number, operand in enumerate(operands):
            if not is_leaf(operand):
                self.report(
                    f"has {_kind(operand)} for operand {number} of {of}: "
                    "bind it to a variable first"
                )

    def expression(self, expr: Expr) -> None:
        match expr:
            case Var():
                self.use(expr)
            case GlobalVar(name=name):
                if name not in self.module:
                    known = ", ".join(sorted(self.module.functions))
                    self.report(f"refers to {name!r}, no function of the module; it has: {known}")
            case ShapeExpr() | PrimValue():
                self.struct_info(expr.struct_info)
            case Tuple(fields=fields):
                for f in fields:
                    self.expression(f)
            case TupleGetItem(tuple_value=inner, index=index):
                self.expression(inner)
                info = inner.struct_info
                if isinstance(info, TupleStructInfo) and not 0 <= index < len(info.fields):
                    self.report(f"takes field {index} of {info}, which has {len(info.fields)}")
            case Call():
                self.call(expr)
            case If():
                self.conditional(expr)
            case SeqExpr():
                with self.scope():
                    self.sequence(expr)
            case Function():
                at = self.at
                self.function(expr)
                self.at = at
            case _:
                pass

    def call(self, call: Call) -> None:
        before = len(self.breaches)
        if not isinstance(call.op, Op):
            self.expression(call.op)
        for a in call.args:
            self.expression(a)
        for info in call.sinfo_args:
            self.struct_info(info)
        effects = not is_pure_in(self.module, call)
        effect = f"calls {callee_text(call.op)}, which has side effects"
        if self.in_dataflow and effects:
            self.report(f"{effect}: move it out of the dataflow block")
        if len(self.breaches) == before:
            for breach in breaches_of_call(self.module, call):
                self.report(breach)
        if self.marked_pure and effects and len(self.breaches) == before:
            self.report(f"{effect}: the function is marked pure, it needs pure=False")

    def conditional(self, branch: If) -> None:
        at = self.at
        if self.in_dataflow:
            self.report("is a conditional: move it out of the dataflow block")
        self.expression(branch.cond)
        info = branch.cond.struct_info
        is_host = isinstance(info, PrimStructInfo) and info.dtype == "bool"
        if not is_host and relation(tensor((), "bool"), info) == "contradiction":
            self.report(f"branches on {branch.cond.struct_info}, needs {tensor((), 'bool')}")
        for seq in (branch.true_branch, branch.false_branch):
            with self.scope():
                self.sequence(seq)
            self.at = at
            self.agrees(branch.struct_info, seq.struct_info)

    # --- uses ---------------------------------------------------------------------------

    def use(self, var: Var) -> None:
        if var in self.visible:
            return
        if var not in self.anywhere:
            self.report(f"uses {var.name}, which nothing defines")
        elif var not in self.defined:
            self.report(f"uses {var.name} before it is defined")
        elif isinstance(var, DataflowVar):
            self.report(f"uses {var.name}, a dataflow variable, outside of its block")
        else:
            self.report(f"uses {var.name} outside of the branch or function that defines it")
        self.visible.add(var)  # report it once

    def struct_info(self, info: StructInfo) -> None:
        """Check that the symbols and variables in `info` are bound."""
        if isinstance(info, TensorStructInfo) and isinstance(info.shape, Var):
            self.use(info.shape)
        for name in sorted(free_symbols(info) - self.symbols):
            self.report(
                f"uses the symbol {name}, which no parameter and no match_cast before has "
                "alone as a dimension"
            )
            self.symbols.add(name)  # report it once

    def agrees(self, declared: StructInfo, known: StructInfo) -> None:
        if relation(declared, known) == "contradiction":
            self.report(f"is declared as {declared}, but it is {known}")


def _known(value: Expr) -> StructInfo:
    """The struct info of `value`, or that of an object where `value` is itself ill-formed."""
    try:
        return value.struct_info
    except IndexError:
        return ObjectStructInfo()


def _kind(expr: Expr) -> str:
    match expr:
        case Call(op=callee):
            return f"a call of {callee_text(callee)}"
        case If():
            return "a conditional"
        case Function():
            return "a function"
        case TupleGetItem():
            return "a projection"
        case Tuple():
            return "a tuple of computations"
        case _:
            return "a sequence"
