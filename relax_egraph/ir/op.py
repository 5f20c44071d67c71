"""Operators: a name, parameters, and a struct-info rule.

The decorated function *is* the rule, and its signature declares the parameters:

* positional, ``TensorStructInfo``: a tensor operand;
* positional, ``TupleStructInfo``: a tuple of tensors;
* positional, ``ShapeStructInfo``: a shape operand;
* positional, ``PrimStructInfo``: a scalar of the host, perhaps symbolic;
* any of these ``| None = None``: an operand that may be left out, behind all that may not;
* keyword-only: an attribute, with its type and default.

Everything else about an operator (reference semantics, loops, cost) is a table in the layer that
needs it, keyed by the name; a test checks that the tables are total.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal, TypeAlias

from relax_egraph.errors import IllTyped
from relax_egraph.ir.agreement import bind, substituted
from relax_egraph.ir.attributes import REQUIRED as REQUIRED
from relax_egraph.ir.attributes import AttrKind as AttrKind
from relax_egraph.ir.attributes import AttrParam as AttrParam
from relax_egraph.ir.attributes import attr_kind
from relax_egraph.ir.attributes import complete_attrs as complete_attrs
from relax_egraph.ir.expr import Call, Expr, PrimValue
from relax_egraph.ir.own import Own
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)

OperandKind: TypeAlias = Literal["tensor", "tensors", "shape", "prim", "any"]


@dataclass(frozen=True, slots=True)
class Operand:
    """A positional parameter; an `optional` one may be left out of a call."""

    name: str
    kind: OperandKind
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Op:
    """An operator.  ``str(op)`` is the name that scripts and rules use: ``R.nn.relu``.

    `elementwise` operators compute each element of the result from the elements of the
    operands at the same index, after broadcasting.  They, and others that are `fusible`, may be
    one step of a kernel of several.  `rule` of an intrinsic takes the whole `Call`; any other
    takes the operands' struct info (``None`` for one that is left out) and the attributes.
    `order` is that of `slots` unless operands come first.  `own` is the rest of an operator of a
    user; the rest of a built-in one is in tables of the rooms that need it.
    """

    name: str
    operands: tuple[Operand, ...]
    attrs: tuple[AttrParam, ...]
    rule: Callable[..., StructInfo]
    meaning: str
    elementwise: bool = False
    fusible: bool = False
    pure: bool = True
    intrinsic: bool = False
    order: tuple[str, ...] = ()
    own: Own | None = None

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of operands and attributes, in the order of scripts."""
        return self.order or (*(o.name for o in self.operands), *(a.name for a in self.attrs))

    @property
    def required(self) -> int:
        """The number of operands that may not be left out."""
        return sum(not o.optional for o in self.operands)

    def __reduce__(self) -> tuple[Callable[[str], "Op"], tuple[str]]:
        """Pickle by name: one operator of a name is in force where it is read."""
        return _named, (self.name,)

    def __str__(self) -> str:
        return f"R.{self.name}"

    def __repr__(self) -> str:
        return str(self)

    @property
    def struct_info(self) -> StructInfo:
        """A function; the rule says more about its result."""
        return FuncStructInfo(None, ObjectStructInfo(), self.pure)


OPS: dict[str, Op] = {}
"""Every built-in operator, by name, in order of definition."""


def _named(name: str) -> Op:
    from relax_egraph.ir.operators import named  # which imports this module

    return named(name)


_OPERAND_KINDS: Mapping[Any, OperandKind] = {
    TensorStructInfo: "tensor",
    TupleStructInfo: "tensors",
    ShapeStructInfo: "shape",
    PrimStructInfo: "prim",
}


def op(
    namespace: str = "",
    *,
    name: str = "",
    meaning: str = "",
    elementwise: bool = False,
    fusible: bool = False,
    pure: bool = True,
    order: tuple[str, ...] = (),
) -> Callable[[Callable[..., StructInfo]], Op]:
    """Define the operator of a struct-info rule, in `namespace`.

    Its name and meaning are by default the name of the rule and the first lines of its docstring.
    """

    def define(rule: Callable[..., StructInfo]) -> Op:
        operands, attrs = params_of(inspect.signature(rule))
        return _register(
            Op(
                name=_qualified(namespace, name or rule.__name__),
                operands=operands,
                attrs=attrs,
                rule=rule,
                meaning=meaning or meaning_of(rule),
                elementwise=elementwise,
                fusible=fusible or elementwise,
                pure=pure,
                order=order,
            )
        )

    return define


def intrinsic(
    namespace: str = "", *, pure: bool = True
) -> Callable[[Callable[[Call], StructInfo]], Op]:
    """Define an operator whose rule reads the whole call: its operands are not all values."""

    def define(rule: Callable[[Call], StructInfo]) -> Op:
        name = _qualified(namespace, rule.__name__)
        return _register(Op(name, (), (), rule, meaning_of(rule), pure=pure, intrinsic=True))

    return define


def infer(call: Call) -> StructInfo:
    """The struct info of `call`; raises `IllTyped` with the operands as the user writes them.

    The result of a function is over the caller's symbols, unknown where they do not determine it.
    """
    callee = call.op
    if not isinstance(callee, Op):
        if call.sinfo_args:
            return call.sinfo_args[0]
        return _result(callee.struct_info, tuple(a.struct_info for a in call.args))
    if callee.intrinsic:
        return callee.rule(call)
    if not callee.required <= len(call.args) <= len(callee.operands):
        wanted = ", ".join(f"{o.name}?" if o.optional else o.name for o in callee.operands)
        count = "{}" if callee.required == len(callee.operands) else f"{callee.required} to {{}}"
        takes = count.format(len(callee.operands))
        raise IllTyped(f"{callee} takes {takes} operands ({wanted}), got {len(call.args)}")
    infos = [_operand(callee, p, a) for p, a in zip(callee.operands, call.args, strict=False)]
    result = callee.rule(*infos, **complete_attrs(callee, call.attrs))
    return _of_one_shape(result, infos) if callee.elementwise else result


def _of_one_shape(result: StructInfo, operands: Sequence[StructInfo]) -> StructInfo:
    """The `result` of an elementwise operator; it has the shape that a variable is for `operands`.

    That is one variable for all operands but scalars.
    """
    if not isinstance(result, TensorStructInfo) or result.shape is not None:
        return result
    shapes = {i.shape for i in operands if isinstance(i, TensorStructInfo) and i.dims != ()}
    shape = shapes.pop() if len(shapes) == 1 else None
    return result if shape is None else replace(result, shape=shape)


def _result(callee: StructInfo, args: tuple[StructInfo, ...]) -> StructInfo:
    """The result of a function for `args`, without the function's own symbols."""
    if not isinstance(callee, FuncStructInfo):
        return ObjectStructInfo()
    params = callee.params or ()
    values = bind(params, args) if len(params) == len(args) else {}
    return substituted(callee.ret, values)


def is_pure(call: Call) -> bool:
    """Whether `call` has no effects; an unknown function may have any."""
    if isinstance(call.op, Op):
        return call.op.pure
    info = call.op.struct_info
    return isinstance(info, FuncStructInfo) and info.purity


def _operand(callee: Op, operand: Operand, value: Expr) -> StructInfo:
    info = value.struct_info
    match operand.kind, info:
        case "any", _:
            return info
        case kind, ObjectStructInfo() if kind in _UNKNOWN:
            return _UNKNOWN[kind]
        case "tensor", TensorStructInfo():
            return info
        case "shape", ShapeStructInfo():
            return info
        case "prim", PrimStructInfo():
            return replace(info, number=_number(value))
        case "tensors", TupleStructInfo(fields=fields):
            if all(isinstance(f, TensorStructInfo) for f in fields):
                return info
        case _:
            pass
    needs = _NEEDS[operand.kind]
    raise IllTyped(f"{callee}: operand {operand.name} is {info}, needs {needs}")


def _number(value: Expr) -> float | None:
    """The value of a float literal, in its dtype."""
    if not isinstance(value, PrimValue) or not isinstance(value.value, float):
        return None
    return value.value if value.constant is None else float(value.constant.data.item())


_UNKNOWN: Mapping[OperandKind, StructInfo] = {
    "tensor": TensorStructInfo(),
    "shape": ShapeStructInfo(),
    "prim": PrimStructInfo("int64"),
}
"""The struct info of an unknown operand."""

_NEEDS: Mapping[OperandKind, str] = {
    "tensor": "a tensor",
    "tensors": "a tuple of tensors",
    "shape": "a shape",
    "prim": "a number of the host",
}


def _register(new: Op) -> Op:
    if new.name in OPS:
        raise ValueError(f"operator {new.name!r} is defined twice")
    OPS[new.name] = new
    return new


def _qualified(namespace: str, name: str) -> str:
    name = name.rstrip("_")  # a rule may be called `sum_`
    return f"{namespace}.{name}" if namespace else name


def meaning_of(rule: Callable[..., Any]) -> str:
    """The first paragraph of the docstring of `rule`, on one line."""
    return (inspect.getdoc(rule) or "").split("\n\n")[0].replace("\n", " ")


def params_of(signature: inspect.Signature) -> tuple[tuple[Operand, ...], tuple[AttrParam, ...]]:
    """The operands and the attributes that the signature of a struct-info rule declares."""
    operands: list[Operand] = []
    attrs: list[AttrParam] = []
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY:
            kind, optional = attr_kind(p.annotation)
            attrs.append(AttrParam(p.name, kind, optional, p.default))
        else:
            operands.append(_operand_of(p))
    return tuple(operands), tuple(attrs)


def _operand_of(p: inspect.Parameter) -> Operand:
    annotation, optional = p.annotation, p.default is None
    if optional:
        annotation = next(a for a in annotation.__args__ if a is not type(None))
    return Operand(p.name, _OPERAND_KINDS.get(annotation, "any"), optional)


import_module("relax_egraph.ir.ops")  # so that `OPS` has all operators
