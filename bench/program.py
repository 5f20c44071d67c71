"""A module as a straight line of operators, and that line as a Python function over other ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph.ir.attributes import complete_attrs
from relax_egraph.ir.expr import Attr, Call, Constant, Expr, Function, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.walk import bindings_of

Array = npt.NDArray[Any]

Operators = Mapping[str, Callable[..., Callable[..., Any]]]
"""For the name of an operator, what makes of its attributes a function of its operands."""


class NotRunnable(Exception):
    """A module is beyond a system; the message says why."""


@dataclass(frozen=True, slots=True)
class Step:
    """``result = operator(*operands, **attrs)``; `attrs` are complete."""

    operator: str
    operands: tuple[Var | Constant, ...]
    attrs: Mapping[str, Attr]
    result: Var


@dataclass(frozen=True)
class Program:
    """The function ``main`` of a module: its steps, in order, and its one result."""

    params: tuple[Var, ...]
    steps: tuple[Step, ...]
    result: Var

    @cached_property
    def names(self) -> Mapping[Var | Constant, str]:
        """A name for each value: ``x0 …`` of parameters, ``c0 …`` of constants, ``v0 …``."""
        constants = [o for s in self.steps for o in s.operands if isinstance(o, Constant)]
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


def program_of(module: IRModule) -> Program:
    """`module` as a program; raises `NotRunnable` if it is more than operators on tensors."""
    main = module["main"]
    if not isinstance(main, Function):
        raise NotRunnable("main is a loop function: needs one of operators")
    known: dict[Expr, Var] = {}
    steps: list[Step] = []
    for binding in bindings_of(main.body):
        value = getattr(binding, "value", None)
        if isinstance(value, Var):
            known[binding.var] = known.get(value, value)
        elif isinstance(value, Call) and isinstance(value.op, Op):
            operands = [known.get(a, a) for a in value.args]
            tensors = tuple(o for o in operands if isinstance(o, Var | Constant))
            if len(tensors) < len(operands):
                raise NotRunnable(f"{value.op} of {value.args}: needs tensors alone")
            attrs = complete_attrs(value.op, value.attrs)
            steps.append(Step(value.op.name, tensors, attrs, binding.var))
        else:
            raise NotRunnable(f"{binding.var.name} is no operator's result")
    result = known.get(main.body.body, main.body.body)
    if not isinstance(result, Var):
        raise NotRunnable(f"main returns {result}: needs one tensor")
    return Program(main.params, tuple(steps), result)


def as_function(
    program: Program, operators: Operators, constant: Callable[[Array], Any]
) -> Callable[..., Any]:
    """`program` over `operators`: one line of Python for each step, compiled.

    Raises `NotRunnable` for an operator that is not in the table.
    """
    names = program.names
    known: dict[str, Any] = {name: constant(data) for name, data in program.constants.items()}
    lines = [f"def main({', '.join(names[p] for p in program.params)}):"]
    for number, step in enumerate(program.steps):
        if step.operator not in operators:
            raise NotRunnable(f"no operator {step.operator}")
        known[f"f{number}"] = operators[step.operator](**step.attrs)
        operands = ", ".join(names[o] for o in step.operands)
        lines.append(f"    {names[step.result]} = f{number}({operands})")
    lines.append(f"    return {names[program.result]}")
    exec("\n".join(lines), known)
    return known["main"]


def plain(function: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    """`function`, whatever the attributes: for a table of `Operators`."""

    def chosen(**_: Attr) -> Callable[..., Any]:
        return function

    return chosen


def in_double(array: Array) -> Array:
    """`array` in float64 if it is of another float."""
    return array.astype(np.float64) if array.dtype.kind == "f" else array
