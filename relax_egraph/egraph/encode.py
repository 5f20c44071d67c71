"""From a dataflow block to an e-graph in which nothing is proven equal yet.

Each value is one class with one node.  Inside, broadcasts are explicit (`R.broadcast_to` before
every elementwise operator whose operands differ in shape) and attributes are canonical, so that
a rule needs one form.  A binding that rules cannot look into (a match_cast, a call of a packed
or loop function, a tuple, an operator on unknown shapes) is opaque: it stays as it is, over
operands that rules may rewrite.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relax_egraph.egraph.view import LEAF, OPAQUE, ClassId, EClass, ENode, View
from relax_egraph.egraph.vocabulary import operators
from relax_egraph.ir.expr import (
    Attr,
    Binding,
    Call,
    Constant,
    Expr,
    MatchCast,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.occurrences import shape_variables_of
from relax_egraph.ir.op import OPS, Op, complete_attrs
from relax_egraph.ir.ops.manipulate import unit_axes
from relax_egraph.ir.struct_info import Shape, ShapeStructInfo, TensorStructInfo, symbols_of, tensor


@dataclass(frozen=True, slots=True)
class Encoded:
    """A block as a view; `origin` says which class a variable of the block became."""

    view: View
    origin: Mapping[Var, ClassId]


def encode(bindings: Sequence[Binding], outputs: Sequence[Var]) -> Encoded:
    """Encode `bindings`; roots are the `outputs`, then every match_cast, which is an assertion."""
    encoder = _Encoder()
    for binding in bindings:
        encoder.binding(binding)
    origin = encoder.classes_of
    checks = [origin[b.var] for b in bindings if isinstance(b, MatchCast)]
    roots = tuple(dict.fromkeys([*(origin[v] for v in outputs), *checks]))
    view = View(
        classes=dict(enumerate(encoder.classes)),
        roots=roots,
        leaves=tuple(encoder.leaves),
        opaque=tuple(encoder.opaque),
    )
    return Encoded(view, origin)


def free_values(value: Expr) -> tuple[Expr, ...]:
    """The variables and constants that `value` reads, in order, through tuples."""
    match value:
        case Var() | Constant():
            return (value,)
        case Tuple(fields=fields):
            return tuple(v for f in fields for v in free_values(f))
        case TupleGetItem(tuple_value=inner):
            return free_values(inner)
        case Call(args=args):
            return tuple(v for a in args for v in free_values(a))
        case _:
            return ()


def reads_of(binding: Binding) -> tuple[Expr, ...]:
    """What the value of `binding` reads, then the variables that struct info names as shapes."""
    value = binding.value
    infos = [binding.var.struct_info]
    if isinstance(binding, MatchCast):
        infos.append(binding.struct_info)
    if isinstance(value, Call):
        infos += [*value.sinfo_args, value.struct_info]
    shapes = {v: None for info in infos for v in sorted(shape_variables_of(info), key=str)}
    return (*free_values(value), *shapes)


def canonical_attrs(
    op: Op, attrs: Mapping[str, Attr], rank: int, shape: Shape | None
) -> tuple[tuple[str, Attr], ...]:
    """Complete attributes with axes counted from the front and written out, for rank `rank`.

    Of a reduction or squeeze the axes are a set and are sorted; of ``expand_dims`` they are places
    in the result.  The axes that squeeze takes by default stay ``None`` where `shape`, the
    first operand's, does not tell.
    """
    complete = complete_attrs(op, attrs)
    match op.name:
        case "permute_dims":
            axes = _ints(complete["axes"], tuple(reversed(range(rank))))
            complete["axes"] = tuple(a % rank for a in axes)
        case "squeeze" if complete["axis"] is None:
            complete["axis"] = unit_axes(shape)
        case "sum" | "max" | "min" | "mean" | "prod" | "variance" | "std" | "squeeze":
            axes = _ints(complete["axis"], tuple(range(rank)))
            complete["axis"] = tuple(sorted(a % rank for a in axes))
        case "expand_dims":
            axes = _ints(complete["axis"], ())
            complete["axis"] = tuple(sorted(a % (rank + len(axes)) for a in axes))
        case "nn.softmax":
            axis = complete["axis"]
            complete["axis"] = axis % rank if isinstance(axis, int) else axis
        case _:
            pass
    return tuple(complete.items())


def _ints(axes: Attr, default: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(a) for a in axes) if isinstance(axes, tuple) else default


class _Encoder:
    """Classes in order of definition, and which class each variable and constant became."""

    def __init__(self) -> None:
        self.classes: list[EClass] = []
        self.classes_of: dict[Var, ClassId] = {}
        self.leaves: list[Expr] = []
        self.opaque: list[Binding] = []
        self._leaf_of: dict[int, ClassId] = {}
        self._same: dict[object, ClassId] = {}

    def binding(self, binding: Binding) -> None:
        value = binding.value
        if isinstance(binding, MatchCast):
            self.classes_of[binding.var] = self._opaque(binding, None)
        elif isinstance(value, Var | Constant):
            self.classes_of[binding.var] = self._operand(value)
        else:
            self.classes_of[binding.var] = self._value(binding, value)

    def _value(self, binding: VarBinding, value: Expr) -> ClassId:
        node = self._open(value) if isinstance(value, Call) else None
        if node is None:
            return self._opaque(binding, _signature(value, self))
        info = value.struct_info
        return self._add(node, info if isinstance(info, TensorStructInfo) else TensorStructInfo())

    def _open(self, value: Call) -> ENode | None:
        """The node that rules see of an operator's call; ``None`` if they see nothing of it."""
        op, info = value.op, value.struct_info
        if not isinstance(op, Op) or op.intrinsic or not isinstance(info, TensorStructInfo):
            return None
        if isinstance(info.shape, Var):
            return None
        ranks = [_rank(a) for a in value.args]
        if any(rank is None for rank in ranks) or (op.elementwise and info.dims is None):
            return None
        first = value.args[0].struct_info
        shape = first.dims if isinstance(first, TensorStructInfo) else None
        attrs = canonical_attrs(op, value.attrs, ranks[0] or 0, shape)
        if any(attr is None for _, attr in attrs) or op.name not in operators():
            return None
        children = [self._child(a) for a in value.args]
        if op.elementwise:
            children = [self._spread(c, info) if isinstance(c, int) else c for c in children]
        return ENode(op.name, tuple(children), attrs)

    def _child(self, value: Expr) -> ClassId | ShapeStructInfo:
        if isinstance(value, ShapeExpr):
            return ShapeStructInfo(value.values, len(value.values))
        return self._operand(value)

    def _spread(self, operand: ClassId, result: TensorStructInfo) -> ClassId:
        known = self.classes[operand]
        if known.struct_info.dims == result.dims or result.dims is None:
            return operand
        shape = ShapeStructInfo(result.dims, len(result.dims))
        info = tensor(result.dims, known.struct_info.dtype)
        return self._add(ENode(OPS["broadcast_to"].name, (operand, shape)), info)

    def _operand(self, value: Expr) -> ClassId:
        if isinstance(value, Var) and value in self.classes_of:
            return self.classes_of[value]
        if id(value) not in self._leaf_of:
            key = len(self.leaves)
            self.leaves.append(value)
            self.classes.append(_leaf(value, key))
            self._leaf_of[id(value)] = len(self.classes) - 1
        return self._leaf_of[id(value)]

    def _opaque(self, binding: Binding, signature: object) -> ClassId:
        if signature is not None and signature in self._same:
            return self._same[signature]
        children = tuple(self._operand(v) for v in reads_of(binding))
        info = binding.var.struct_info
        known = info if isinstance(info, TensorStructInfo) else TensorStructInfo()
        self.opaque.append(binding)
        self.classes.append(
            EClass("tensor", (ENode(OPAQUE, children, key=len(self.opaque) - 1),), known)
        )
        made = len(self.classes) - 1
        if signature is not None:
            self._same[signature] = made
        return made

    def _add(self, node: ENode, info: TensorStructInfo) -> ClassId:
        if node in self._same:
            return self._same[node]
        known = not symbols_of(info) and bool(node.classes)
        const = known and all(self.classes[c].is_const for c in node.classes)
        scalar = self.classes[node.classes[0]].scalar if node.op == "broadcast_to" else None
        self.classes.append(EClass("tensor", (node,), info, const, scalar))
        self._same[node] = len(self.classes) - 1
        return self._same[node]


def _leaf(value: Expr, key: int) -> EClass:
    info = value.struct_info
    known = info if isinstance(info, TensorStructInfo) else TensorStructInfo()
    if not isinstance(value, Constant):
        return EClass("tensor", (ENode(LEAF, key=key),), known)
    scalar = float(value.data.item()) if value.data.size == 1 and _exact(value) else None
    return EClass("tensor", (ENode(LEAF, key=key),), known, True, scalar)


def _exact(value: Constant) -> bool:
    """Whether a float64 holds the scalar exactly."""
    number = value.data.item()
    return bool(np.isnan(number)) or float(number) == number


def _rank(operand: Expr) -> int | None:
    """The rank of an operand that rules can look into; ``None`` of any other."""
    info = operand.struct_info
    if isinstance(operand, ShapeExpr):
        return len(operand.values)
    return info.ndim if isinstance(info, TensorStructInfo) and info.ndim >= 0 else None


def _signature(value: Expr, encoder: _Encoder) -> object:
    """What makes two opaque values the same: callee, operands by class, attributes, result."""
    match value:
        case Var() | Constant():
            return encoder._operand(value)  # pyright: ignore[reportPrivateUsage]
        case Tuple(fields=fields):
            return ("tuple", *(_signature(f, encoder) for f in fields))
        case TupleGetItem(tuple_value=inner, index=index):
            return ("get", _signature(inner, encoder), index)
        case Call(op=op, args=args, attrs=attrs, sinfo_args=sinfo):
            name = str(op) if isinstance(op, Op) else op
            operands = tuple(_signature(a, encoder) for a in args)
            return (name, operands, tuple(attrs.items()), sinfo)
        case _:
            return value
