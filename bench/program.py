"""A module as a straight line of operators, and as a Python function over other operators."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relax_egraph.ir import dims
from relax_egraph.ir.attributes import complete_attrs
from relax_egraph.ir.expr import (
    Attr,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import TensorStructInfo
from relax_egraph.ir.walk import bindings_of

Array = npt.NDArray[Any]

Operand: TypeAlias = "Var | Constant | ShapeExpr | tuple[Operand, ...]"
"""A tensor, a shape, or several of them."""

GET = "tuple_get"
"""The operator of a step that selects the field of a tuple with its attribute `index`."""

Operators = Mapping[str, Callable[..., Callable[..., Any]]]
"""Maps the name of an operator to a function from its attributes to a function of operands."""


class NotRunnable(Exception):
    """A system does not support a module, for the reason in the message."""


@dataclass(frozen=True, slots=True)
class Step:
    """``result = operator(*operands, **attrs)``; `attrs` are complete.

    For a loop function that writes to operands in place, `operator` is its name.
    """

    operator: str
    operands: tuple[Operand, ...]
    attrs: Mapping[str, Attr]
    result: Var


@dataclass(frozen=True)
class Program:
    """The function ``main`` of a module: its steps, in order, and its single result."""

    params: tuple[Var, ...]
    steps: tuple[Step, ...]
    result: Var

    @cached_property
    def names(self) -> Mapping[Var | Constant, str]:
        """A name for each value: ``x0 …`` for parameters, ``c0 …`` for constants, ``v0 …``."""
        leaves = [leaf for s in self.steps for leaf in leaves_of(s.operands)]
        constants = [leaf for leaf in leaves if isinstance(leaf, Constant)]
        values = (("x", self.params), ("c", constants), ("v", [s.result for s in self.steps]))
        return {
            value: f"{letter}{number}"
            for letter, group in values
            for number, value in enumerate(dict.fromkeys(group))
        }

    @property
    def constants(self) -> Mapping[str, Array]:
        """The data of the constants, by name."""
        return {n: v.data for v, n in self.names.items() if isinstance(v, Constant)}


def uses(module: IRModule, dtype: str) -> bool:
    """Whether a value of ``main`` is of `dtype`."""
    infos = [value.struct_info for value in program_of(module).names]
    return any(isinstance(i, TensorStructInfo) and i.dtype == dtype for i in infos)


def leaves_of(operand: Operand) -> list[Var | Constant | ShapeExpr]:
    """The tensors and shapes of `operand`, in order."""
    if isinstance(operand, tuple):
        return [leaf for each in operand for leaf in leaves_of(each)]
    return [operand]


def program_of(module: IRModule) -> Program:
    """`module` as a program; raises `NotRunnable` unless it consists of operators on tensors."""
    main = module["main"]
    if not isinstance(main, Function):
        raise NotRunnable("main is a loop function: needs one of operators")
    known: dict[Expr, Var] = {}
    steps: list[Step] = []
    for binding in bindings_of(main.body):
        value = getattr(binding, "value", None)
        if isinstance(value, Var):
            known[binding.var] = known.get(value, value)
        elif isinstance(value, TupleGetItem):
            operands = _operands((value.tuple_value,), known)
            steps.append(Step(GET, operands, {"index": value.index}, binding.var))
        elif isinstance(value, Call) and isinstance(value.op, Op):
            if value.op.name == "call_tir_inplace":
                steps.append(_in_place(value, binding.var, known))
                continue
            attrs = complete_attrs(value.op, value.attrs)
            steps.append(Step(value.op.name, _operands(value.args, known), attrs, binding.var))
        else:
            raise NotRunnable(f"{binding.var.name} is no operator's result")
    result = known.get(main.body.body, main.body.body)
    if not isinstance(result, Var):
        raise NotRunnable(f"main returns {result}: needs one tensor")
    return Program(main.params, tuple(steps), result)


def _in_place(call: Call, result: Var, known: Mapping[Expr, Var]) -> Step:
    """The step that writes to an operand in place; its operator is the loop function, by name."""
    function, operands, *_ = call.args
    assert isinstance(function, GlobalVar)
    assert isinstance(operands, Tuple)
    return Step(function.name, _operands(operands.fields, known), {}, result)


def _operands(args: Sequence[Expr], known: Mapping[Expr, Var]) -> tuple[Operand, ...]:
    result: list[Operand] = []
    for arg in args:
        value = known.get(arg, arg)
        if isinstance(value, Tuple):
            result.append(_operands(value.fields, known))
        elif isinstance(value, Var | Constant | ShapeExpr):
            result.append(value)
        else:
            raise NotRunnable(f"an operand is {value}: needs tensors and shapes alone")
    return tuple(result)


def as_function(
    program: Program, operators: Operators, constant: Callable[[Array], Any]
) -> Callable[..., Any]:
    """`program` over `operators`: one line of Python for each step, compiled.

    Shapes are tuples of numbers, whose symbols are read from the parameters.  Raises `NotRunnable`
    for an operator that is not in the table.
    """
    names = program.names
    known: dict[str, Any] = {name: constant(data) for name, data in program.constants.items()}
    lines = [f"def main({', '.join(names[p] for p in program.params)}):"]
    lines += [f"    {symbol} = {where}" for symbol, where in _symbols(program).items()]
    for number, step in enumerate(program.steps):
        operands = ", ".join(_source(o, names) for o in step.operands)
        if step.operator == GET:
            lines.append(f"    {names[step.result]} = {operands}[{step.attrs['index']}]")
            continue
        if step.operator not in operators:
            raise NotRunnable(f"no operator {step.operator}")
        known[f"f{number}"] = operators[step.operator](**step.attrs)
        lines.append(f"    {names[step.result]} = f{number}({operands})")
    lines.append(f"    return {names[program.result]}")
    exec("\n".join(lines), known)
    return known["main"]


def _symbols(program: Program) -> dict[str, str]:
    """Expressions for the symbols of its shapes: extents of parameters, by name."""
    shapes = [o for s in program.steps for o in leaves_of(s.operands) if isinstance(o, ShapeExpr)]
    names = {name for shape in shapes for d in shape.values for name in dims.symbols(d)}
    expressions: dict[str, str] = {}
    for param in program.params:
        info = param.struct_info
        extents = info.dims if isinstance(info, TensorStructInfo) else None
        for axis, extent in enumerate(extents or ()):
            if (name := dims.text(extent)) in names:
                expressions.setdefault(name, f"{program.names[param]}.shape[{axis}]")
    return expressions


def _source(operand: Operand, names: Mapping[Var | Constant, str]) -> str:
    """`operand` as Python source."""
    match operand:
        case tuple():
            return f"({''.join(f'{_source(o, names)}, ' for o in operand)})"
        case ShapeExpr(values):
            return f"({''.join(f'{dims.text(d)}, ' for d in values)})"
        case _:
            return names[operand]


def plain(function: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    """`function` regardless of the attributes, for a table of `Operators`."""

    def chosen(**_: Attr) -> Callable[..., Any]:
        return function

    return chosen


def passing(function: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    """`function` with the attributes as keyword arguments, for a table of `Operators`."""

    def chosen(**attrs: Attr) -> Callable[..., Any]:
        return partial(function, **attrs)

    return chosen


def in_double(array: Array) -> Array:
    """`array`, converted to float64 if it is of another float dtype."""
    return array.astype(np.float64) if array.dtype.kind == "f" else array
