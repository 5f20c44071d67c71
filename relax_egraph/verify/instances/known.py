"""The known values of an instance, and their propagation through nodes and premises."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import sympy

from relax_egraph.egraph.encoding.attributes import meant
from relax_egraph.egraph.node import CALLS
from relax_egraph.errors import IllTyped, RelaxEgraphError
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float, is_signed
from relax_egraph.ir.expr import PrimValue
from relax_egraph.ir.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.verify.instances.primitives import Fails, argument, compute, computes
from relax_egraph.verify.instances.problem import Application, Problem
from relax_egraph.verify.instances.query import Apply, Arg, Literal
from relax_egraph.verify.instances.slots import MISSING, Palette


@dataclass(slots=True)
class Known:
    """The values of variables so far; `refused` counts the steps that contradict them."""

    problem: Problem
    palette: Palette
    refused: Counter[str]
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    done: set[int] = field(default_factory=set[int])

    def get(self, arg: Arg) -> Any:
        """The value of `arg`, or `MISSING`."""
        return arg.value if isinstance(arg, Literal) else self.values.get(arg, MISSING)

    def learn(self, arg: Arg | None, value: Any) -> bool:
        """Set `arg` and return whether it was unknown; raises `Fails` if its value differs."""
        if arg is None:
            if value is not True:
                raise Fails
            return False
        known = self.get(arg)
        if known is MISSING:
            self.values[str(arg)] = value
            return True
        if not same(known, value):
            raise Fails
        return False

    def spread(self) -> None:
        """Propagate known values until nothing changes; raises `Fails`."""
        changed = True
        while changed:
            changed = False
            for step in (*self.problem.nodes, *self.problem.premises):
                if id(step) in self.done:
                    continue
                try:
                    conclusions = self.follow(step)
                except (Fails, IllTyped):
                    self.refused[step.text] += 1
                    raise Fails from None
                for arg, value in conclusions or ():
                    try:
                        changed |= self.learn(arg, value)
                    except Fails:
                        self.refused[step.text] += 1
                        raise
        for variable, constant in self.problem.scalars.items():
            self.fits(variable, constant)

    def fits(self, variable: str, constant: Arg) -> None:
        """Raise `Fails` if a tensor of integers cannot have the value `constant`."""
        dtype, value = self.get(self.problem.dtypes[variable]), self.get(constant)
        if MISSING in (dtype, value) or is_float(str(dtype)):
            return
        least = -128 if is_signed(str(dtype)) else 0
        most = {"bool": 1, "uint8": 255}.get(str(dtype), 127)
        if not least <= value <= most or value != int(value):
            self.refused[f"a constant {value} of dtype {dtype}"] += 1
            raise Fails

    def follow(self, step: Application | Apply) -> list[tuple[Arg | None, Any]] | None:
        """The values that follow from `step`; ``None`` if too little is known."""
        if isinstance(step, Application):
            conclusions = self.results(step)
            if conclusions is not None and not self.has_open_dtype(step):
                self.done.add(id(step))
            return conclusions
        args = [self.get(a) for a in step.args]
        if step.head in ("vec-of", "Prim.dim", "Prim.number") and step.result is not None:
            known = self.get(step.result)
            if known is not MISSING:
                self.done.add(id(step))
                if step.head != "vec-of":
                    known = (known.value, known.dtype) if known is not None else ()
                if len(known) != len(args):
                    raise Fails
                return list(zip(step.args, known, strict=True))
        unknown = [k for k, a in enumerate(args) if a is MISSING]
        if len(unknown) == 1 and step.result is not None and self.get(step.result) is not MISSING:
            (at,) = unknown
            upward = self.palette.chance(0.5)
            try:
                value = argument(step.head, tuple(args), at, self.get(step.result), upward)
            except Fails:
                return None
            return [(step.args[at], value)]
        if unknown:
            return None
        self.done.add(id(step))
        if not computes(step.head):
            return None
        return [(step.result, compute(step.head, tuple(args)))]

    def has_open_dtype(self, node: Application) -> bool:
        """Whether `node` is a number of unknown dtype, whose shape is known at once."""
        return node.head == "R.const" and self.get(node.args[1]) is MISSING

    def results(self, node: Application) -> list[tuple[Arg | None, Any]] | None:
        """The shape and dtype of a node's result; ``None`` if too little is known."""
        shape, dtype = self.of(node.result)
        match node.head:
            case "R.none" | "K.load" | "K.store":
                return []
            case head if head.removeprefix("R.") in CALLS:
                return []  # its shape and dtype are arguments
            case "R.const":
                return [(shape, ()), *(self.either(dtype, node.args[1]))]
            case "R.tuple_get":
                whole, at = (self.get(a) for a in node.args)
                if whole is MISSING or at is MISSING:
                    return None
                if not 0 <= at < len(whole.fields):
                    raise Fails
                part = whole.fields[at]
                return [(shape, part.dims), (dtype, part.dtype)]
            case _:
                info = self.infer(node, partial=False)
                if info is None:
                    return None
                if isinstance(info, TupleStructInfo):
                    return [(node.result, info)]
                return [(shape, info.dims), (dtype, info.dtype)]

    def either(self, a: Arg, b: Arg) -> Iterator[tuple[Arg, Any]]:
        """The value of one of two equal arguments, from the other one."""
        if (value := self.get(b)) is not MISSING:
            yield a, value
        elif (value := self.get(a)) is not MISSING:
            yield b, value

    def of(self, variable: str) -> tuple[Arg, Arg]:
        """The variables of the shape and the dtype of a tensor."""
        if variable not in self.problem.shapes:
            return variable, variable
        return self.problem.shapes[variable], self.problem.dtypes[variable]

    def infer(self, node: Application, partial: bool) -> TensorStructInfo | TupleStructInfo | None:
        """The struct info of the result; ``None`` if too little is known.

        If `partial`, dtypes may be unknown.  Raises `Fails` or `IllTyped`.
        """
        op = node.op
        assert op is not None
        operands: list[StructInfo | None] = []
        for operand, arg in zip(op.operands, node.args, strict=False):
            match operand.kind:
                case "tensor":
                    info = self.known(str(arg), partial)
                    if info is None:
                        producer = self.problem.producers.get(str(arg))
                        if producer is None or producer.head != "R.none":
                            return None
                    operands.append(info)
                case "tensors":
                    parts = [self.known(t, partial) for t in self.problem.elements[str(arg)]]
                    if None in parts:
                        return None
                    operands.append(TupleStructInfo(tuple(p for p in parts if p is not None)))
                case "shape":
                    if (value := self.get(arg)) is MISSING:
                        return None
                    operands.append(ShapeStructInfo(value, len(value)))
                case _:
                    value: Any = self.get(arg)
                    if value is MISSING:
                        return None
                    operands.append(prim_info(value))
        while operands and operands[-1] is None:
            operands.pop()
        if None in operands[: op.required]:
            raise Fails
        attrs: dict[str, Any] = {}
        for attr, arg in zip(op.attrs, node.args[len(op.operands) :], strict=True):
            if (value := self.get(arg)) is MISSING:
                return None
            attrs[attr.name] = meant(attr, value)
        try:
            info = op.rule(*operands, **attrs)
        except (AttributeError, IndexError, TypeError, ValueError, ZeroDivisionError) as problem:
            if isinstance(problem, RelaxEgraphError):
                raise
            raise Fails from None
        fields = info.fields if isinstance(info, TupleStructInfo) else (info,)
        if any(not isinstance(f, TensorStructInfo) or f.dims is None for f in fields):
            raise Fails
        return info if isinstance(info, TensorStructInfo | TupleStructInfo) else None

    def known(self, variable: str, partial: bool) -> TensorStructInfo | None:
        """The struct info of a tensor, if it is known; `partial` accepts an unknown dtype."""
        if variable not in self.problem.shapes:
            return None
        shape, dtype = (self.get(a) for a in self.of(variable))
        if shape is MISSING or (dtype is MISSING and not partial):
            return None
        return tensor(shape, None if dtype is MISSING else dtype)

    def none(self, variable: str) -> bool:
        """Whether a variable stands for an absent operand."""
        producer = self.problem.producers.get(variable)
        return producer is not None and producer.head == "R.none"

    def static(self, variable: str) -> bool:
        """Whether all leaves of a constant have static shapes."""
        producer = self.problem.producers.get(variable)
        if producer is None:
            shape = self.get(self.problem.shapes[variable])
            if all(isinstance(d, int) for d in shape):
                return True
            self.refused["a constant has no symbolic shape"] += 1
            return False
        below = [str(a) for a in producer.args if str(a) in self.problem.shapes]
        return all(self.static(v) for v in below)

    def agrees(self, node: Application) -> None:
        """Raise `Fails` if the known values of `node` do not fit its operator."""
        info = self.infer(node, partial=True)
        if isinstance(info, TensorStructInfo):
            shape = self.get(self.problem.shapes[node.result])
            if shape is not MISSING and not same(shape, info.dims):
                raise Fails

    def beside(self, arg: Arg) -> list[Any]:
        """The literals in premises with `arg`, or with terms that contain it."""
        literals: list[Any] = []
        reached: set[Arg] = {arg}
        for _ in range(3):
            for premise in self.problem.premises:
                sides = (*premise.args, *(() if premise.result is None else (premise.result,)))
                if computes(premise.head) and reached & set(sides):
                    literals += [s.value for s in sides if isinstance(s, Literal)]
                    reached |= {s for s in sides if isinstance(s, str)}
        sort = self.problem.sorts.get(str(arg), "")
        kind = {"f64": float, "i64": int, "String": str}.get(sort)
        return [v for v in literals if kind is not None and type(v) is kind]

    def open(self, node: Application) -> tuple[bool, bool]:
        """Whether slots of `node` are empty, and whether it touches a known shape."""
        if node.op is None:
            besides = {*self.problem.shapes, *self.problem.elements}
            missing = any(self.get(a) is MISSING for a in node.args if a not in besides)
            whole = node.head == "R.tuple_get" and self.get(node.args[0]) is MISSING
            return missing and not whole, True
        shapes: list[Any] = []
        missing = False
        for operand, arg in zip(node.op.operands, node.args, strict=False):
            tensors = (
                [str(arg)]
                if operand.kind == "tensor"
                else self.problem.elements[str(arg)]
                if operand.kind == "tensors"
                else []
            )
            for t in tensors:
                if self.none(t):
                    continue
                shape, dtype = self.of(t)
                shapes.append(self.get(shape))
                missing |= t not in self.problem.producers and self.get(dtype) is MISSING
            if not tensors:
                missing |= operand.kind != "tensors" and self.get(arg) is MISSING
        missing |= any(v is MISSING for v in shapes)
        attrs = node.args[len(node.op.operands) :]
        missing |= any(self.get(a) is MISSING for a in attrs)
        if node.result in self.problem.shapes:
            shapes.append(self.get(self.problem.shapes[node.result]))
        return missing, any(v is not MISSING for v in shapes)


def same(a: Any, b: Any) -> bool:
    """Whether two values of one sort are equal; dimensions are compared as expressions."""
    if a == b or isinstance(a, bool) or isinstance(b, bool):
        return a is b if isinstance(a, bool) or isinstance(b, bool) else True
    if isinstance(a, tuple) and isinstance(b, tuple):
        parts: list[Any] = [a, b]
        return len(a) == len(b) and all(map(same, *parts))
    return isinstance(a, sympy.Expr | int) and isinstance(b, sympy.Expr | int) and dims.equal(a, b)


def prim_info(value: PrimValue | None) -> StructInfo | None:
    """A host scalar as an operand of an operator's struct-info rule."""
    if value is None:
        return None
    info = value.struct_info
    if isinstance(info, PrimStructInfo) and isinstance(value.value, float):
        return PrimStructInfo(info.dtype, None, value.value)
    return info
