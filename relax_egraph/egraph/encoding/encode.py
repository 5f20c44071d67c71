"""Encoding of a dataflow block as the initial e-graph: one class with one node for each value.

Broadcasts are explicit (`R.broadcast_to` before every elementwise operator whose operands differ
in shape) and attributes are canonical, so that a rule needs one form.  A binding outside the
vocabulary of rules (a match_cast, a tuple, an operator on unknown shapes, a call of a packed or
loop function that returns no tensor of known shape) is opaque: it stays unchanged, over operands
that rules may rewrite.  A binding that may fail at run time is opaque, too, as rules might drop it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from relax_egraph.egraph.encoding.attributes import canonical_attrs
from relax_egraph.egraph.encoding.reciprocals import with_reciprocals
from relax_egraph.egraph.node import (
    CALLS,
    TUPLE_GET,
    WHOLE,
    Child,
    Node,
    Sort,
    call_node,
    leaf_node,
    opaque_node,
)
from relax_egraph.egraph.rulebook.vocabulary import operator
from relax_egraph.egraph.view import ClassId, EClass, ENode, View
from relax_egraph.ir import dims
from relax_egraph.ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    ExternFunc,
    GlobalVar,
    MatchCast,
    PrimValue,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.occurrences import shape_variables_of
from relax_egraph.ir.op import OPS, Op, Operand
from relax_egraph.ir.struct_info import (
    Shape,
    ShapeStructInfo,
    TensorStructInfo,
    symbols_of,
    tensor,
)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A block as a view; `origin` has the class of each variable of the block."""

    view: View
    origin: Mapping[Var, ClassId]


def encode(
    bindings: Sequence[Binding], outputs: Sequence[Var], refusing: Collection[Var] = ()
) -> Encoded:
    """Encode `bindings`; every match_cast, and the bindings of `refusing`, may fail at run time.

    The roots are these bindings, so that they fail in the order of the program, then the `outputs`.
    """
    encoder = _Encoder(refusing)
    for binding in bindings:
        encoder.binding(binding)
    origin = encoder.classes_of
    checks = (b.var for b in bindings if isinstance(b, MatchCast) or b.var in refusing)
    roots = tuple(dict.fromkeys(origin[v] for v in (*checks, *outputs)))
    view = View(
        classes=dict(enumerate(encoder.classes)),
        roots=roots,
        leaves=tuple(encoder.leaves),
        opaque=tuple(encoder.opaque),
    )
    return Encoded(with_reciprocals(view), origin)


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
    """The values that `binding` reads, then the shape variables of its struct info."""
    value = binding.value
    infos = [binding.var.struct_info]
    if isinstance(binding, MatchCast):
        infos.append(binding.struct_info)
    if isinstance(value, Call):
        infos += [*value.sinfo_args, value.struct_info]
    shapes = {v: None for info in infos for v in sorted(shape_variables_of(info), key=str)}
    return (*free_values(value), *shapes)


class _Encoder:
    """Classes in order of definition, and the class of each variable and constant."""

    def __init__(self, refusing: Collection[Var]) -> None:
        self.classes: list[EClass] = []
        self.classes_of: dict[Var, ClassId] = {}
        self.leaves: list[Expr] = []
        self.opaque: list[Binding] = []
        self._refusing = refusing
        self._tuples: dict[Var, Tuple] = {}
        self._leaf_of: dict[int, ClassId] = {}
        self._same: dict[object, ClassId] = {}

    def binding(self, binding: Binding) -> None:
        value = binding.value
        if isinstance(binding, MatchCast):
            self.classes_of[binding.var] = self._opaque(binding, None)
            return
        if isinstance(value, Tuple) and binding.var not in self._refusing:
            self._tuples[binding.var] = value
        if isinstance(field := self._field(value), Var | Constant):
            self.classes_of[binding.var] = self._operand(field)
        else:
            self.classes_of[binding.var] = self._value(binding, value)

    def _field(self, value: Expr) -> Expr:
        """`value`; the field itself, if it is a field of a tuple of known fields."""
        if isinstance(value, TupleGetItem) and isinstance(value.tuple_value, Var):
            known = self._tuples.get(value.tuple_value)
            return value if known is None else known.fields[value.index]
        return value

    def _value(self, binding: VarBinding, value: Expr) -> ClassId:
        node: ENode | None = None
        if binding.var in self._refusing:
            pass
        elif isinstance(value, Call):
            node = self._open(value)
        elif isinstance(value, TupleGetItem):
            node = self._part(value)
        if node is None:
            return self._opaque(binding, _signature(value, self))
        info = value.struct_info
        if isinstance(info, TensorStructInfo):
            return self._add(node, info)
        return self._add(node, TensorStructInfo(), "tuple")

    def _part(self, value: TupleGetItem) -> ENode | None:
        """The node for a field of a tuple class; ``None`` for other tuples and fields."""
        inner = value.tuple_value
        if not isinstance(inner, Var) or not isinstance(value.struct_info, TensorStructInfo):
            return None
        known = self.classes_of.get(inner)
        if known is None or self.classes[known].sort != "tuple":
            return None
        return Node(TUPLE_GET, (known,), (("index", value.index),))

    def _open(self, value: Call) -> ENode | None:
        """The node for the call of an operator; ``None`` if the call must be opaque."""
        op, info = value.op, value.struct_info
        if isinstance(op, Op) and op.name in CALLS:
            return self._below(op.name, value)
        if not isinstance(op, Op) or (traits := operator(op.name)) is None:
            return None
        if isinstance(info, TensorStructInfo) and isinstance(info.shape, Var):
            return None
        if isinstance(info, TensorStructInfo) == traits.makes_tuple:
            return None  # attributes select one result instead of several, or the reverse
        known = isinstance(info, TensorStructInfo) and info.dims is not None
        if op.elementwise and not known:
            return None
        attrs = canonical_attrs(op, value.attrs, [a.struct_info for a in value.args])
        if attrs is None:
            return None
        args = (*value.args, *(None,) * (len(op.operands) - len(value.args)))
        children: list[Child[ClassId]] = []
        for operand, arg in zip(op.operands, args, strict=True):
            if not _open_operand(operand, arg):
                return None
            child = self._child(arg)
            spread = op.elementwise and isinstance(child, int)
            children.append(self._spread(child, info) if spread else child)  # pyright: ignore[reportArgumentType]
        return Node(op.name, tuple(children), attrs)

    def _below(self, op: str, value: Call) -> ENode | None:
        """The node for a call of a function below the graph, on tensors and to one tensor."""
        match value.args:
            case GlobalVar() | ExternFunc() as callee, Tuple(fields=operands):
                pass
            case ExternFunc() as callee, *operands if op == "call_pure_packed":
                pass
            case _:
                return None  # with symbols as further arguments, or on a tuple that is a variable
        info = value.struct_info
        if not isinstance(info, TensorStructInfo) or info.dims is None or info.dtype is None:
            return None
        if not operands or not all(map(_ranked, operands)):
            return None
        shape = ShapeStructInfo(info.dims, len(info.dims))
        return call_node(op, callee.name, tuple(map(self._operand, operands)), shape, info.dtype)

    def _child(self, value: Expr | None) -> Child[ClassId]:
        match value:
            case None | PrimValue():
                return value
            case ShapeExpr(values=values):
                return ShapeStructInfo(values, len(values))
            case Tuple(fields=fields):
                return tuple(map(self._operand, fields))
            case _:
                return self._operand(value)

    def _spread(self, operand: ClassId, result: TensorStructInfo) -> ClassId:
        known = self.classes[operand]
        if result.dims is None or _same(known.struct_info.dims, result.dims):
            return operand
        shape = ShapeStructInfo(result.dims, len(result.dims))
        info = tensor(result.dims, known.struct_info.dtype)
        return self._add(Node(OPS["broadcast_to"].name, (operand, shape)), info)

    def _operand(self, value: Expr) -> ClassId:
        if isinstance(value, Var) and value in self.classes_of:
            return self.classes_of[value]
        if id(value) not in self._leaf_of:  # constants are compared by identity
            key = len(self.leaves)
            self.leaves.append(value)
            self.classes.append(_leaf(value, key))
            self._leaf_of[id(value)] = len(self.classes) - 1
        return self._leaf_of[id(value)]

    def _opaque(self, binding: Binding, signature: object) -> ClassId:
        if signature is not None and signature in self._same:
            return self._same[signature]
        children = tuple(self._whole(self._operand(v)) for v in reads_of(binding))
        info = binding.var.struct_info
        known = info if isinstance(info, TensorStructInfo) else TensorStructInfo()
        self.opaque.append(binding)
        node = opaque_node(len(self.opaque) - 1, children)
        cast = children[0] if isinstance(binding, MatchCast) and _is_tensor(binding.value) else None
        self.classes.append(EClass("tensor", (node,), known, elements_of=cast))
        number = len(self.classes) - 1
        if signature is not None:
            self._same[signature] = number
        return number

    def _whole(self, operand: ClassId) -> ClassId:
        """`operand`; for a tuple, a tensor class that represents it as an operand."""
        if self.classes[operand].sort != "tuple":
            return operand
        return self._add(Node(WHOLE, (operand,)), TensorStructInfo())

    def _add(self, node: ENode, info: TensorStructInfo, sort: Sort = "tensor") -> ClassId:
        if node in self._same:
            return self._same[node]
        known = (
            not symbols_of(info)
            and not node.symbols
            and bool(node.operands)
            and node.op not in CALLS
        )
        const = known and all(self.classes[c].is_const for c in node.operands)
        scalar = self.classes[node.operands[0]].scalar if node.op == "broadcast_to" else None
        self.classes.append(EClass(sort, (node,), info, const, scalar))
        self._same[node] = len(self.classes) - 1
        return self._same[node]


def _leaf(value: Expr, key: int) -> EClass:
    info = value.struct_info
    known = info if isinstance(info, TensorStructInfo) else TensorStructInfo()
    if not isinstance(value, Constant):
        return EClass("tensor", (leaf_node(key),), known)
    return EClass("tensor", (leaf_node(key),), known, True, _scalar(value.data))


def _scalar(data: npt.NDArray[Any]) -> float | None:
    """The only element of `data`, or of a vector of equal integers, if it is exact in float64."""
    is_vector = data.ndim == 1 and data.size and data.dtype.kind in "iu"
    if data.size != 1 and not (is_vector and (data == data[0]).all()):
        return None
    number = data.flat[0].item()
    return float(number) if number != number or float(number) == number else None


def _open_operand(operand: Operand, value: Expr | None) -> bool:
    """Whether the argument of a call for `operand`, or its absence, has a form in the e-graph."""
    match operand.kind, value:
        case _, None:
            return operand.optional
        case "tensor", _:
            return _ranked(value)
        case "tensors", Tuple(fields=fields):
            return bool(fields) and all(map(_ranked, fields))
        case ("shape", ShapeExpr()) | ("prim", PrimValue()):
            return True
        case _:
            return False


def _same(a: Shape | None, b: Shape) -> bool:
    return a == b or (a is not None and len(a) == len(b) and all(map(dims.equal, a, b)))


def _is_tensor(value: Expr) -> bool:
    return isinstance(value, Var | Constant) and isinstance(value.struct_info, TensorStructInfo)


def _ranked(value: Expr) -> bool:
    info = value.struct_info
    return (
        isinstance(value, Var | Constant) and isinstance(info, TensorStructInfo) and info.ndim >= 0
    )


def _signature(value: Expr, encoder: _Encoder) -> object:
    """A key that is equal for equal opaque values: callee, operand classes, attributes, result."""
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
