"""What is known of an instance, and what follows from it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import sympy

from relax_egraph.egraph.encoding.attributes import meant
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
    """The values of variables so far; `refused` counts what contradicted something."""

    problem: Problem
    palette: Palette
    refused: Counter[str]
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    done: set[int] = field(default_factory=set[int])

    def get(self, arg: Arg) -> Any:
        """What is known of `arg`, or `MISSING`."""
        return arg.value if isinstance(arg, Literal) else self.values.get(arg, MISSING)

    def learn(self, arg: Arg | None, value: Any) -> bool:
        """Whether this was new; raises `Fails` if something else is known."""
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
        """Find all that follows from what is known; raises `Fails`."""
        changed = True
        while changed:
            changed = False
            for step in (*self.problem.nodes, *self.problem.premises):
                if id(step) in self.done:
                    continue
                try:
                    found = self.follow(step)
                except (Fails, IllTyped):
                    self.refused[step.text] += 1
                    raise Fails from None
                for arg, value in found or ():
                    try:
                        changed |= self.learn(arg, value)
                    except Fails:
                        self.refused[step.text] += 1
                        raise
        for variable, constant in self.problem.scalars.items():
            self.fits(variable, constant)

    def fits(self, variable: str, constant: Arg) -> None:
        """A tensor of integers has no value that is none."""
        dtype, value = self.get(self.problem.dtypes[variable]), self.get(constant)
        if MISSING in (dtype, value) or is_float(str(dtype)):
            return
        least = -128 if is_signed(str(dtype)) else 0
        most = {"bool": 1, "uint8": 255}.get(str(dtype), 127)
        if not least <= value <= most or value != int(value):
            self.refused[f"a constant {value} of dtype {dtype}"] += 1
            raise Fails

    def follow(self, step: Application | Apply) -> list[tuple[Arg | None, Any]] | None:
        """What follows from `step`, if enough is known."""
        if isinstance(step, Application):
            made = self.made(step)
            if made is not None:
                self.done.add(id(step))
            return made
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
                found = argument(step.head, tuple(args), at, self.get(step.result), upward)
            except Fails:
                return None
            return [(step.args[at], found)]
        if unknown:
            return None
        self.done.add(id(step))
        if not computes(step.head):
            return None
        return [(step.result, compute(step.head, tuple(args)))]

    def made(self, node: Application) -> list[tuple[Arg | None, Any]] | None:
        """What a node says of its result, if enough is known."""
        shape, dtype = self.of(node.result)
        match node.head:
            case "R.none" | "K.load" | "K.store":
                return []
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
        """What two arguments that are one are, if one of them is known."""
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
        """The struct info of the result; ``None`` if too little is known for it.

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
                        made = self.problem.made.get(str(arg))
                        if made is None or made.head != "R.none":
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
        """The struct info of a tensor, if it is known; of a `partial` one the shape is."""
        if variable not in self.problem.shapes:
            return None
        shape, dtype = (self.get(a) for a in self.of(variable))
        if shape is MISSING or (dtype is MISSING and not partial):
            return None
        return tensor(shape, None if dtype is MISSING else dtype)

    def none(self, variable: str) -> bool:
        """Whether a variable stands for an operand that is left out."""
        made = self.problem.made.get(variable)
        return made is not None and made.head == "R.none"

    def static(self, variable: str) -> bool:
        """Whether what a constant is made of are tensors whose shape is known."""
        made = self.problem.made.get(variable)
        if made is None:
            shape = self.get(self.problem.shapes[variable])
            if all(isinstance(d, int) for d in shape):
                return True
            self.refused["a constant has no symbolic shape"] += 1
            return False
        below = [str(a) for a in made.args if str(a) in self.problem.shapes]
        return all(self.static(v) for v in below)

    def agrees(self, node: Application) -> None:
        """Raise `Fails` if what is known of `node` is not one application of its operator."""
        info = self.infer(node, partial=True)
        if isinstance(info, TensorStructInfo):
            shape = self.get(self.problem.shapes[node.result])
            if shape is not MISSING and not same(shape, info.dims):
                raise Fails

    def beside(self, arg: Arg) -> list[Any]:
        """The literals that stand in a premise with `arg`, directly or in what it is part of."""
        found: list[Any] = []
        reached: set[Arg] = {arg}
        for _ in range(3):
            for premise in self.problem.premises:
                sides = (*premise.args, *(() if premise.result is None else (premise.result,)))
                if computes(premise.head) and reached & set(sides):
                    found += [s.value for s in sides if isinstance(s, Literal)]
                    reached |= {s for s in sides if isinstance(s, str)}
        sort = self.problem.sorts.get(str(arg), "")
        kind = {"f64": float, "i64": int, "String": str}.get(sort)
        return [v for v in found if kind is not None and type(v) is kind]

    def open(self, node: Application) -> tuple[bool, bool]:
        """Whether slots of `node` are empty, and whether it touches a known shape."""
        if node.op is None:
            missing = any(self.get(a) is MISSING for a in node.args if a not in self.problem.shapes)
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
                missing |= t not in self.problem.made and self.get(dtype) is MISSING
            if not tensors:
                missing |= operand.kind != "tensors" and self.get(arg) is MISSING
        missing |= any(v is MISSING for v in shapes)
        attrs = node.args[len(node.op.operands) :]
        missing |= any(self.get(a) is MISSING for a in attrs)
        if node.result in self.problem.shapes:
            shapes.append(self.get(self.problem.shapes[node.result]))
        return missing, any(v is not MISSING for v in shapes)


def same(a: Any, b: Any) -> bool:
    """Whether two values of one sort are equal; dimensions may be so for another reason."""
    if a == b or isinstance(a, bool) or isinstance(b, bool):
        return a is b if isinstance(a, bool) or isinstance(b, bool) else True
    if isinstance(a, tuple) and isinstance(b, tuple):
        parts: list[Any] = [a, b]
        return len(a) == len(b) and all(map(same, *parts))
    return isinstance(a, sympy.Expr | int) and isinstance(b, sympy.Expr | int) and dims.equal(a, b)


def prim_info(value: PrimValue | None) -> StructInfo | None:
    """What a rule of an operator gets of a scalar of the host."""
    if value is None:
        return None
    info = value.struct_info
    if isinstance(info, PrimStructInfo) and isinstance(value.value, float):
        return PrimStructInfo(info.dtype, None, value.value)
    return info
