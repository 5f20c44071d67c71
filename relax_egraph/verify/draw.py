"""Random instances of what a rule matches.

What is known spreads to what follows from it; then the slots of one node, preferably of one that
is half known, are filled by a proposal, which is taken back if a premise or the operator's rule
refuses it.  Nothing here has to be complete: egglog has the last word on what matches.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import sympy

from relax_egraph.egraph.attributes import SORT_OF_ATTR, meant, said
from relax_egraph.egraph.loader import RuleInfo
from relax_egraph.errors import IllTyped, RelaxEgraphError
from relax_egraph.ir import dims
from relax_egraph.ir.expr import PrimValue
from relax_egraph.ir.op import REQUIRED, AttrParam
from relax_egraph.ir.struct_info import (
    DTYPES,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.verify.contraction import CONTRACTION
from relax_egraph.verify.movement import MOVEMENT
from relax_egraph.verify.primitives import PRIMITIVES, Fails, argument, compute
from relax_egraph.verify.problem import VALUES, Node, Problem
from relax_egraph.verify.query import Apply, Arg, Literal
from relax_egraph.verify.slots import MISSING, Palette, Slots, palette_of

PROPOSALS = {**MOVEMENT, **CONTRACTION}
_TRIES = 40
_LAST = ("reshape", "broadcast_to")
"""Operators that fit anything: they are drawn when what they connect is known."""


@dataclass(frozen=True, slots=True)
class Instance:
    """Values for all variables of `problem`; `rules` are those that it is matched by."""

    problem: Problem
    values: Mapping[str, Any]
    rules: tuple[RuleInfo, ...]

    def get(self, arg: Arg) -> Any:
        """The value of `arg`."""
        return arg.value if isinstance(arg, Literal) else self.values[arg]

    def info(self, variable: str) -> TensorStructInfo:
        """What is known of a tensor."""
        shape, dtype = self.problem.shapes[variable], self.problem.dtypes[variable]
        return tensor(self.get(shape), self.get(dtype))


def draw_instance(
    problem: Problem,
    rules: tuple[RuleInfo, ...],
    random: Random,
    refused: Counter[str],
    small: bool = False,
    dtypes: Sequence[str] = (),
) -> Instance | None:
    """An instance, or ``None`` if this attempt came to nothing; `refused` counts what refused.

    It is of few and small extents if `small`; the usual dtype is one of `dtypes`, if given.
    """
    said = {d.value for d in problem.dtypes.values() if isinstance(d, Literal)}
    palette = palette_of(random, small, dtypes or sorted(map(str, said)))
    drawing = _Drawing(problem, palette, refused)
    return Instance(problem, drawing.values, rules) if drawing.complete() else None


@dataclass(slots=True)
class _Drawing:
    problem: Problem
    palette: Palette
    refused: Counter[str]
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    done: set[int] = field(default_factory=set[int])

    def complete(self) -> bool:
        try:
            self.spread()
        except Fails:
            return False
        while (node := self.next()) is not None:
            if not self.attempt(node):
                return False
        for constant in dict.fromkeys(self.problem.scalars.values()):
            if self.get(constant) is MISSING and not self.fill(str(constant), "f64"):
                return False
        for variable, sort in self.problem.needed.items():
            if self.get(variable) is MISSING and not self.fill(variable, sort):
                return False
        return all(self.static(t) for t in self.problem.constants)

    def get(self, arg: Arg) -> Any:
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
        if not _same(known, value):
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
        if MISSING in (dtype, value) or str(dtype).startswith("float"):
            return
        least = 0 if dtype in ("bool", "uint8") else -128
        most = 1 if dtype == "bool" else 127
        if not least <= value <= most or value != int(value):
            self.refused[f"a constant {value} of dtype {dtype}"] += 1
            raise Fails

    def follow(self, step: Node | Apply) -> list[tuple[Arg | None, Any]] | None:
        """What follows from `step`, if enough is known."""
        if isinstance(step, Node):
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
        if step.head not in PRIMITIVES:
            return None
        return [(step.result, compute(step.head, tuple(args)))]

    def made(self, node: Node) -> list[tuple[Arg | None, Any]] | None:
        shape, dtype = self.of(node.result)
        match node.head:
            case "R.none" | "K.load" | "K.store":
                return []
            case "R.const":
                return [(shape, ()), *(self.same(dtype, node.args[1]))]
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

    def same(self, a: Arg, b: Arg) -> Iterator[tuple[Arg, Any]]:
        if (value := self.get(b)) is not MISSING:
            yield a, value
        elif (value := self.get(a)) is not MISSING:
            yield b, value

    def of(self, variable: str) -> tuple[Arg, Arg]:
        if variable not in self.problem.shapes:
            return variable, variable
        return self.problem.shapes[variable], self.problem.dtypes[variable]

    def infer(self, node: Node, partial: bool) -> TensorStructInfo | TupleStructInfo | None:
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
                    operands.append(_prim(value))
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
        return info

    def known(self, variable: str, partial: bool) -> TensorStructInfo | None:
        if variable not in self.problem.shapes:
            return None
        shape, dtype = (self.get(a) for a in self.of(variable))
        if shape is MISSING or (dtype is MISSING and not partial):
            return None
        return tensor(shape, None if dtype is MISSING else dtype)

    def next(self) -> Node | None:
        """The node to draw: one that is connected to what is known, and the pickiest of these."""
        open_nodes = [(n, *self.open(n)) for n in self.problem.nodes]
        waiting = [(n, connected) for n, missing, connected in open_nodes if missing]
        if not waiting:
            return None
        return min(waiting, key=lambda w: (not w[1], _freedom(w[0])))[0]

    def open(self, node: Node) -> tuple[bool, bool]:
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

    def none(self, variable: str) -> bool:
        made = self.problem.made.get(variable)
        return made is not None and made.head == "R.none"

    def attempt(self, node: Node) -> bool:
        """Fill the slots of `node`, within a number of tries."""
        for attempt in range(_TRIES):
            before, done = dict(self.values), set(self.done)
            try:
                slots = Slots(node, self.problem, self.values, self.palette)
                self.propose(slots, attempt)
                self.values.update(slots.drawn)
                if node.op is not None:
                    self.agrees(node)
                self.spread()
                return True
            except (Fails, IllTyped, IndexError, ValueError) as problem:
                if isinstance(problem, IllTyped):
                    self.refused[node.text] += 1
                self.values, self.done = before, done
        return False

    def agrees(self, node: Node) -> None:
        """Raise `Fails` if what is known of `node` is not one application of its operator."""
        info = self.infer(node, partial=True)
        if isinstance(info, TensorStructInfo):
            known = self.get(self.problem.shapes[node.result])
            if known is not MISSING and not _same(known, info.dims):
                self.refused[node.text] += 1
                raise Fails

    def propose(self, slots: Slots, attempt: int) -> None:
        node, palette = slots.node, self.palette
        if node.op is None:
            for arg in node.args:
                if isinstance(arg, str) and self.get(arg) is MISSING:
                    self.values[arg] = self.any(arg, self.problem.sorts.get(arg, ""))
            return
        if node.op.name in PROPOSALS:
            PROPOSALS[node.op.name](slots)
        known = [s for o in node.op.operands if o.kind == "tensor" and (s := slots.shape(o.name))]
        for operand, arg in zip(node.op.operands, node.args, strict=False):
            match operand.kind:
                case "tensor" if not self.none(str(arg)):
                    if slots.shape(operand.name) is None:
                        slots.give(operand.name, _near(known, palette))
                    self.dtype(slots, str(arg), operand.name, attempt)
                case "tensors":
                    for t in self.problem.elements[str(arg)]:
                        if slots.get(self.problem.shapes[t]) is MISSING:
                            slots.put(self.problem.shapes[t], _near(known, palette))
                        self.dtype(slots, t, operand.name, attempt)
                case "shape" if slots.get(arg) is MISSING:
                    slots.put(arg, slots.hinted(arg, _near(known, palette), True))
                case "prim" if slots.get(arg) is MISSING:
                    optional = None if operand.optional else PrimValue(1)
                    some = [PrimValue(0), PrimValue(1), PrimValue(palette.static(1)), optional]
                    slots.put(arg, palette.random.choice(some))
                case _:
                    pass
        rank = len(known[0]) if known else 2
        for attr in node.op.attrs:
            if slots.get(slots.arg(attr.name)) is MISSING:
                arg = slots.arg(attr.name)
                near = self.beside(arg)
                value = _attribute(attr, rank, palette)
                if isinstance(value, tuple):
                    value = slots.hinted(arg, value)
                slots.put(
                    arg, palette.random.choice(near) if near and palette.chance(0.5) else value
                )

    def dtype(self, slots: Slots, variable: str, operand: str, attempt: int) -> None:
        """The dtype of a leaf; those of the same instance are mostly the same."""
        arg = self.problem.dtypes[variable]
        if variable in self.problem.made or slots.get(arg) is not MISSING:
            return
        usual = _DTYPE_OF.get(operand, (self.palette.dtype,))
        late = attempt > 8 and self.palette.chance(0.5)
        odd = late or self.palette.chance(0.04)
        slots.put(arg, self.palette.random.choice(DTYPES if odd else usual))

    def fill(self, variable: str, sort: str) -> bool:
        """Draw a variable that no node tells."""
        for _ in range(_TRIES):
            before, done = dict(self.values), set(self.done)
            try:
                if sort in VALUES:
                    shape, dtype = self.of(variable)
                    if self.get(shape) is MISSING:
                        self.values[str(shape)] = self.palette.shape()
                    if self.get(dtype) is MISSING:
                        self.values[str(dtype)] = self.palette.dtype
                elif sort and sort not in ("Tensors", "Tuple"):
                    value = self.any(variable, sort)
                    self.values[variable] = self.rounded(variable, value)
                self.spread()
                return True
            except Fails:
                self.values, self.done = before, done
        return False

    def rounded(self, variable: str, value: Any) -> Any:
        """`value` as a float32 has it, where `variable` is the value of one."""
        tensors = [t for t, constant in self.problem.scalars.items() if constant == variable]
        narrow = any(self.get(self.problem.dtypes[t]) == "float32" for t in tensors)
        return float(np.float32(value)) if narrow else value

    def any(self, variable: str, sort: str) -> Any:
        """A value of `sort`; literals that premises compare `variable` with come first."""
        palette, random = self.palette, self.palette.random
        near = self.beside(variable)
        if near and palette.chance(0.7):
            value = random.choice(near)
            if isinstance(value, float) and palette.chance(0.5):
                value = value * (1 + random.uniform(-3e-7, 3e-7))
            return float(value) if sort == "f64" else value
        match sort:
            case "i64":
                return random.choice((0, 1, 2, 3, -1))
            case "f64":
                return random.choice((0.5, 2.0, 1.0, -1.0, 0.0, 3.0, 0.25, -1.5, 1e-5))
            case "String" if variable in self.problem.dtypes.values():
                return palette.dtype
            case "String":
                return random.choice((palette.dtype, *DTYPES, ""))
            case "bool":
                return palette.chance(0.5)
            case "Dim":
                return palette.extent()
            case "Shape":
                return palette.shape()
            case "Axes":
                return tuple(random.sample(range(4), random.randint(0, 3)))
            case "Floats":
                return ()
            case "Prim":
                return PrimValue(palette.static())
            case _:
                raise Fails

    def beside(self, arg: Arg) -> list[Any]:
        """The literals that stand in a premise with `arg`, directly or in what it is part of."""
        found: list[Any] = []
        reached: set[Arg] = {arg}
        for _ in range(3):
            for premise in self.problem.premises:
                sides = (*premise.args, *(() if premise.result is None else (premise.result,)))
                if premise.head in PRIMITIVES and reached & set(sides):
                    found += [s.value for s in sides if isinstance(s, Literal)]
                    reached |= {s for s in sides if isinstance(s, str)}
        sort = self.problem.sorts.get(str(arg), "")
        kind = {"f64": float, "i64": int, "String": str}.get(sort)
        return [v for v in found if kind is not None and type(v) is kind]

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


def _same(a: Any, b: Any) -> bool:
    """Whether two values of one sort are equal; dimensions may be so for another reason."""
    if a == b or isinstance(a, bool) or isinstance(b, bool):
        return a is b if isinstance(a, bool) or isinstance(b, bool) else True
    if isinstance(a, tuple) and isinstance(b, tuple):
        parts: list[Any] = [a, b]
        return len(a) == len(b) and all(map(_same, *parts))
    return isinstance(a, sympy.Expr | int) and isinstance(b, sympy.Expr | int) and dims.equal(a, b)


def _prim(value: PrimValue | None) -> StructInfo | None:
    if value is None:
        return None
    info = value.struct_info
    if isinstance(info, PrimStructInfo) and isinstance(value.value, float):
        return PrimStructInfo(info.dtype, None, value.value)
    return info


def _freedom(node: Node) -> int:
    """How much an operator fits: the pickier, the earlier it is drawn."""
    if node.op is None:
        return 0
    if node.op.name in _LAST:
        return 9
    if node.op.elementwise:
        return 6
    if node.op.name in CONTRACTION:
        return 1 if node.op.name == "matmul" else 0
    return 3 if node.op.name in MOVEMENT else 2


def _near(known: list[Any], palette: Palette) -> Any:
    """A shape like one of those `known`."""
    if not known or palette.chance(0.2):
        return palette.shape()
    items = list(palette.random.choice(known))
    match palette.random.randrange(5):
        case 0 if items:
            items.pop(palette.random.randrange(len(items)))
        case 1:
            items.insert(palette.random.randint(0, len(items)), palette.extent())
        case 2 if items:
            items = [items[palette.random.randrange(len(items))]]
        case _:
            pass
    return tuple(items)


def _attribute(attr: AttrParam, rank: int, palette: Palette) -> Any:
    default = attr.default
    if default is not REQUIRED and palette.chance(0.5) and "axis" not in attr.name:
        sort = SORT_OF_ATTR[attr.kind]
        if default is not None or sort in ("i64", "String", "Floats"):
            return said(attr, default)
    random = palette.random
    match attr.kind:
        case "bool":
            return palette.chance(0.5)
        case "int" if "axis" in attr.name:
            return random.randrange(max(rank, 1))
        case "int":
            return random.choice((0, 1, 2, 3))
        case "ints" | "int or ints":
            return tuple(
                sorted(random.sample(range(max(rank, 1)), random.randint(0, max(rank, 1))))
            )
        case "float":
            return random.choice((0.0, 0.5, 1.0, -1.0, 2.0))
        case "floats":
            return ()
        case "str" if attr.name.endswith("dtype"):
            return random.choice(DTYPES)
        case "str":
            return random.choice(("NCHW", "NHWC", "fast", "clip", "constant", "linear", "add"))


_DTYPE_OF: Mapping[str, tuple[str, ...]] = {
    "indices": ("int64", "int32"),
    "condition": ("bool",),
    "mask": ("bool",),
    "seq_lengths": ("int64",),
    "labels": ("int64",),
    "targets": ("int64",),
}
"""Dtypes of operands that are not like the others."""
