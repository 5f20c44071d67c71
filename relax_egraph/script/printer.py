"""Prints a module as the text that `parse` reads back."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy.typing as npt

from relax_egraph.errors import IllFormed
from relax_egraph.ir.depth import deep
from relax_egraph.ir.expr import (
    Binding,
    BindingBlock,
    Block,
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    If,
    MatchCast,
    SeqExpr,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.walk import is_leaf
from relax_egraph.script.expression_printer import Constants, ExpressionPrinter
from relax_egraph.script.info_printer import InfoPrinter
from relax_egraph.script.layout import Names, call_lines, def_lines, wrapped
from relax_egraph.script.leaves import METADATA
from relax_egraph.script.literals import attrs_text, const_text, quoted
from relax_egraph.script.symbols import symbols_in
from relax_egraph.script.tir_printer import prim_func_lines
from relax_egraph.tir.stmt import PrimFunc

INDENT = "    "


def print_module(module: IRModule, *, show_meta: bool = False) -> str:
    """The text of `module`: ``print_module(parse(t)) == t`` for every `t` printed before.

    Tensor constants are printed as numbered ``metadata``; `show_meta` puts their values before the
    module, so that the text is self-contained.  Repeated names in a function get numbers.
    """
    text, constants = print_with_constants(module)
    if not show_meta or not constants:
        return text
    values = "".join(f"        {const_text(c)},\n" for c in constants)
    return f"metadata = {{\n    {quoted(METADATA)}: [\n{values}    ]\n}}\n\n\n{text}"


@deep(IllFormed, "the module is nested too deeply to be printed")
def print_with_constants(module: IRModule) -> tuple[str, list[npt.NDArray[Any]]]:
    """The text of `module`, and the constants of its ``metadata``, in order."""
    constants = Constants()
    names = Names()
    functions = {name: names.take(name) for name in module.functions}
    lines = ["@I.ir_module", "class Module:", *_head(module)]
    for number, (name, function) in enumerate(module.functions.items()):
        if number:
            lines.append("")
        if isinstance(function, Function):
            printer = FunctionPrinter(functions, constants)
            lines += printer.lines(functions[name], function, INDENT)
        elif isinstance(function, PrimFunc):
            lines += prim_func_lines(functions[name], function, INDENT)
        else:
            raise TypeError(f"function {name} of the module is a {type(function).__name__}")
    if not module.functions and not _head(module):
        lines.append(f"{INDENT}pass")
    return "\n".join(lines) + "\n", constants.arrays


def _head(module: IRModule) -> list[str]:
    """The attributes and global infos of the module."""
    lines: list[str] = []
    if module.attrs:
        lines += [f"{INDENT}I.module_attrs({attrs_text(module.attrs)})"]
    if module.global_infos:
        infos = (f"{quoted(k)}: [{', '.join(v)}]" for k, v in module.global_infos.items())
        lines += [f"{INDENT}I.module_global_infos({{{', '.join(infos)}}})"]
    return [*lines, ""] if lines and module.functions else lines


class FunctionPrinter:
    """Prints one function; a local function is printed by the printer of the outer one."""

    def __init__(self, functions: Mapping[str, str], constants: Constants) -> None:
        self._variables: dict[Var, str] = {}
        self._names = Names()
        self.expressions = ExpressionPrinter(self._variables, functions, constants)
        self._signature = InfoPrinter(self._variables, signature=True)

    def lines(self, name: str, function: Function, indent: str) -> list[str]:
        """The lines of the function, with declared symbols, and with the module's name if used."""
        symbols = symbols_in(function)
        for symbol in symbols:
            self._names.take(symbol)
        head = self._head(name, function, indent)
        inner = indent + INDENT
        body = [*self._attrs(function, inner), *self.sequence(function.body, inner)]
        declared = [f"{inner}{symbol} = T.int64()" for symbol in symbols]
        if self.expressions.uses_module:
            declared.append(f"{inner}cls = Module")
        return [*head, *declared, *body]

    # --- functions --------------------------------------------------------------------

    def _head(self, name: str, function: Function, indent: str) -> list[str]:
        options = ["private=True"] if function.attrs.get("private") is True else []
        if not function.is_pure:
            options.append("pure=False")
        decorator = f"@R.function({', '.join(options)})" if options else "@R.function"
        params: list[str] = []
        for p in function.params:
            info = self._signature.text(p.struct_info)
            params.append(f"{self._name(p)}: {info}")
        tail = f") -> {self._signature.text(function.ret_struct_info)}:"
        return [f"{indent}{decorator}", *def_lines(indent, f"def {name}(", params, tail)]

    def _attrs(self, function: Function, indent: str) -> list[str]:
        attrs = {k: v for k, v in function.attrs.items() if (k, v) != ("private", True)}
        return [f"{indent}R.func_attr({attrs_text(attrs)})"] if attrs else []

    def _local_function(self, name: str, function: Function, indent: str) -> list[str]:
        inner = indent + INDENT
        head = self._head(name, function, indent)
        return [*head, *self._attrs(function, inner), *self.sequence(function.body, inner)]

    # --- blocks -----------------------------------------------------------------------

    def sequence(self, seq: SeqExpr, indent: str) -> list[str]:
        """The lines of the blocks, and of the return of the result."""
        lines = [line for block in seq.blocks for line in self.block(block, indent)]
        return [*lines, *wrapped(indent, f"return {self.expressions.text(seq.body)}")]

    def block(self, block: Block, indent: str) -> list[str]:
        """The lines of a block of either kind."""
        if not isinstance(block, DataflowBlock):
            return self._bindings(block.bindings, indent)
        lines = [f"{indent}with R.dataflow():", *self._bindings(block.bindings, indent + INDENT)]
        outputs = [b.var for b in block.bindings if not isinstance(b.var, DataflowVar)]
        names = [self._variables[v] for v in outputs]
        return [*lines, *call_lines(indent + INDENT, "R.output(", names)]

    def _bindings(self, bindings: Iterable[Binding], indent: str) -> list[str]:
        return [line for b in bindings for line in self.binding(b, indent)]

    def binding(self, binding: Binding, indent: str) -> list[str]:
        """The lines of a binding: several for a conditional, a local function, a long call."""
        value = binding.value
        if isinstance(binding, VarBinding):
            if isinstance(value, If):
                return self._conditional(self._name(binding.var), value, indent)
            if isinstance(value, Function):
                return self._local_function(self._name(binding.var), value, indent)
        head, args = self._parts(binding)
        info = self.expressions.info.text(binding.var.struct_info)
        target = f"{self._name(binding.var)}: {info} = "
        if args is None:
            return wrapped(indent, f"{target}{head}")
        return call_lines(indent, f"{target}{head}", args)

    def _parts(self, binding: Binding) -> tuple[str, list[str] | None]:
        """The right side of a binding: head and arguments of a call, or another value whole."""
        if isinstance(binding, MatchCast):
            value = self.expressions.text(binding.value)
            claim = self.expressions.info.text(binding.struct_info)
            refusal = [f"refusal={quoted(binding.refusal)}"] if binding.refusal else []
            return "R.match_cast(", [value, claim, *refusal]
        if isinstance(binding.value, Call):
            return self.expressions.call(binding.value)
        return self.expressions.text(binding.value), None

    # --- conditionals -----------------------------------------------------------------

    def _conditional(self, name: str, value: If, indent: str) -> list[str]:
        lines, keyword = list[str](), "if"
        while True:
            lines.append(f"{indent}{keyword} {self.expressions.text(value.cond)}:")
            lines += self._branch(name, value.true_branch, indent + INDENT)
            inner = _conditional_alone(value.false_branch)
            if inner is None:
                break
            value, keyword = inner, "elif"
        branch = self._branch(name, value.false_branch, indent + INDENT)
        return [*lines, f"{indent}else:", *branch]

    def _branch(self, name: str, branch: SeqExpr, indent: str) -> list[str]:
        """The lines of a branch, whose last binding binds the result to `name`.

        If the last binding computes the result, its variable gets the name.
        """
        computed = _computed_last(branch)
        if computed is not None:
            self._variables[computed] = name
        lines = [line for block in branch.blocks for line in self.block(block, indent)]
        if computed is not None:
            return lines
        info = self.expressions.info.text(branch.body.struct_info)
        result = f"{name}: {info} = {self.expressions.text(branch.body)}"
        return [*lines, *wrapped(indent, result)]

    def _name(self, var: Var) -> str:
        if var not in self._variables:
            self._variables[var] = self._names.take(var.name)
        return self._variables[var]


def _conditional_alone(branch: SeqExpr) -> If | None:
    """The conditional that is all of `branch`, which is printed as ``elif``."""
    match branch.blocks:
        case (BindingBlock(bindings=(VarBinding(var=var, value=If() as value),)),):
            return value if branch.body is var else None
        case _:
            return None


def _computed_last(branch: SeqExpr) -> Var | None:
    """The result of `branch`, if the last binding computes it."""
    if not branch.blocks or isinstance(branch.blocks[-1], DataflowBlock):
        return None
    last = branch.blocks[-1].bindings[-1]
    computes = isinstance(last, MatchCast) or not is_leaf(last.value)
    return last.var if computes and last.var is branch.body else None
