"""The chosen program as boxes: a box for each call, with its operators, sizes and price."""

from collections.abc import Iterator, Mapping

from relax_egraph.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo
from relax_egraph.ir.walk import free_vars
from relax_egraph.pictures.boxes import Box, Diagram, Row
from relax_egraph.reasons.classes import type_text
from relax_egraph.reasons.definitions import bindings_in
from relax_egraph.reasons.explain import Reasons
from relax_egraph.reasons.kernels import Running
from relax_egraph.reasons.times import time_text


def kernel_diagrams(reasons: Reasons) -> list[Diagram]:
    """A diagram for each planned function of the result of `reasons`."""
    running = {one.variable: k for k, one in enumerate(reasons.running)}
    planned = {one.function for one in reasons.running}
    return [
        _Drawn(reasons, running, name, function).diagram()
        for name, function in reasons.module.relax_functions()
        if name in planned
    ]


class _Drawn:
    """One function."""

    def __init__(
        self, reasons: Reasons, running: Mapping[Var, int], name: str, function: Function
    ) -> None:
        self.reasons, self.running = reasons, running
        self.name, self.function = name, function
        self.boxes: list[Box] = []
        self.made_by: dict[Var, tuple[int, ...]] = {}
        """The boxes whose values a variable has."""

    def diagram(self) -> Diagram:
        """Parameters, calls in the order of the program, and the result."""
        for param in self.function.params:
            self._add(param, Box(param.name, _type(param.struct_info)))
        for binding in bindings_in(self.function):
            reads = self._reads(binding.value)
            if isinstance(binding, VarBinding) and isinstance(
                binding.value, Tuple | TupleGetItem | Var | Constant
            ):
                self.made_by[binding.var] = reads
            else:
                self._add(binding.var, self._box(binding.var, binding.value, reads))
        body = self.function.body.body
        result = Row(_type(body.struct_info), self._reads(body))
        self.boxes.append(Box("result", "", (result,), result=True))
        return Diagram(self._caption(), self.boxes)

    def _caption(self) -> str:
        here = [k for k, one in enumerate(self.reasons.running) if one.function == self.name]
        prices = [self.reasons.seconds[k] for k in here]
        known = [p for p in prices if p is not None]
        number = f"{len(here)} kernels and operators" if len(here) != 1 else "1 kernel or operator"
        calls = f"{self.name}: {number}"
        return f"{calls}, {time_text(sum(known))} by the cost model" if known else calls

    def _add(self, var: Var, box: Box) -> None:
        self.made_by[var] = (len(self.boxes),)
        self.boxes.append(box)

    def _box(self, var: Var, value: Expr, reads: tuple[int, ...]) -> Box:
        number = self.running.get(var)
        if number is None:
            title = str(value.op) if isinstance(value, Call) else type(value).__name__.lower()
            return Box(title, "", (Row(_defined(var), reads),))
        one = self.reasons.running[number]
        replaced = ", ".join(v.name for v in one.replaces)
        lines = (*_operators(one), *_constants(value))
        return Box(
            _title(one),
            time_text(self.reasons.seconds[number]),
            (Row(_defined(var), reads), *(Row(f"  {line}") for line in lines)),
            tone=number if one.is_fused else None,
            note=f"replaces {replaced}" if replaced else "",
        )

    def _reads(self, value: Expr) -> tuple[int, ...]:
        boxes = (k for var in free_vars(value) for k in self.made_by.get(var, ()))
        return tuple(dict.fromkeys(boxes))


def _title(one: Running) -> str:
    return "fused kernel" if one.is_fused else f"R.{one.operators[0]}"


def _operators(one: Running) -> Iterator[str]:
    """The operators of a fused kernel, as lines."""
    if not one.is_fused:
        return
    line: list[str] = []
    for op in one.operators:
        if line and len(" → ".join((*line, op))) > 48:
            yield " → ".join(line) + " →"
            line = []
        line.append(op)
    yield " → ".join(line)


def _constants(value: Expr) -> Iterator[str]:
    """The weights that a call reads."""
    args = value.args if isinstance(value, Call) else ()
    for arg in args:
        for each in arg.fields if isinstance(arg, Tuple) else (arg,):
            if isinstance(each, Constant) and each.data.size > 1:
                yield f"reads a constant {_type(each.struct_info)}"


def _defined(var: Var) -> str:
    return f"{var.name}: {_type(var.struct_info)}"


def _type(info: StructInfo) -> str:
    return type_text(info) if isinstance(info, TensorStructInfo) else str(info)
