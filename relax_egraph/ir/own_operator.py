"""The definition of operators by users: `operator`, and what a definition must satisfy."""

import inspect
from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from math import inf
from typing import Any, TypeAlias

from relax_egraph.base.parameters import (
    FLAG,
    NAME,
    Kind,
    function,
    is_flag,
    optional,
    takes,
)
from relax_egraph.errors import IllTyped, OperatorError, RelaxEgraphError
from relax_egraph.ir.attributes import AttrParam
from relax_egraph.ir.op import OPS, Op, Operand, meaning_of, params_of
from relax_egraph.ir.own import Loops, Own, Packed, Reference, Work
from relax_egraph.ir.own_samples import check_samples
from relax_egraph.ir.struct_info import StructInfo

_WORK = Kind(
    "flops for each element of the result, or a function of the extents",
    lambda value: callable(value) or (isinstance(value, int | float) and not is_flag(value)),
    lambda value: callable(value) or 0 <= value < inf,
)

Rule: TypeAlias = Callable[..., Any]
"""From struct info of operands, and attributes by name, to the struct info of the result."""


@takes(
    name=NAME,
    numpy=function("a function of numpy arrays"),
    te=optional(function("a function of tensors of te")),
    packed=optional(NAME),
    dps_packed=optional(NAME),
    work=_WORK,
    elementwise=FLAG,
)
def operator(
    name: str,
    *,
    numpy: Reference,
    te: Loops | None = None,
    packed: str | None = None,
    dps_packed: str | None = None,
    work: Work = 1.0,
    elementwise: bool = False,
) -> Callable[[Rule], Op]:
    """Define an operator; the decorated function is its struct-info rule.

        @rx.operator("my.gelu", numpy=gelu, te=gelu_loops, work=34, elementwise=True)
        def my_gelu(x: TensorStructInfo) -> StructInfo:
            '''out = x · Φ(x).'''
            return x

    The rule maps struct info of operands to that of the result, and raises ``IllTyped`` for
    operands that do not fit.  Its parameters are those of the operator: positional ones are
    operands (`TensorStructInfo`, `ShapeStructInfo`, `PrimStructInfo`, `TupleStructInfo` of
    tensors), keyword-only ones are attributes (``int``, ``float``, ``bool``, ``str``,
    ``tuple[int, ...]``).

    `numpy` is the meaning: it takes arrays in place of the operands, and the attributes by name.
    Kernels are made of `te`, which takes tensors in the same way; or the operator is a call of
    the packed function `packed`, which returns the result, or `dps_packed`, which writes it into
    its last arguments.  Without any of these the machine calls `numpy`.

    An `elementwise` operator computes each element from the elements of the operands at the same
    index, after broadcasting: it becomes a part of kernels with its neighbours.  `work` are flops
    for each element of the result; or a function of the extents of operands and result, tuples of
    numbers, and of the attributes by name.

    The operator is in force in ``with rx.operators(my_gelu):``, or after
    ``rx.register_operators(my_gelu)``.  Raises `OperatorError` for a name that a built-in operator
    has or without a namespace, and for a rule or a numpy function that cannot be right.
    """
    if name in OPS:
        raise OperatorError(f"R.{name} is a built-in operator: choose another name")
    parts = name.split(".")
    if len(parts) < 2 or not all(map(str.isidentifier, parts)):
        raise OperatorError(f"{name!r} is no name of an operator: needs a namespace, 'my.gelu'")
    if sum(way is not None for way in (te, packed, dps_packed)) > 1:
        raise OperatorError(f"R.{name}: needs one of te, packed and dps_packed")
    calls = packed or dps_packed
    own = Own(numpy, te, Packed(calls, calls == dps_packed) if calls else None, work)

    def define(rule: Rule) -> Op:
        operands, attrs = _parameters(name, rule)
        defined = Op(
            name,
            operands,
            attrs,
            _guarded(name, rule),
            meaning_of(rule) or "an operator of the user",
            elementwise=elementwise,
            fusible=elementwise and te is not None,
            own=own,
        )
        check_samples(defined)
        return defined

    return define


def _parameters(name: str, rule: Any) -> tuple[tuple[Operand, ...], tuple[AttrParam, ...]]:
    """The operands and attributes that `rule` declares; raises `OperatorError`."""
    if not isfunction(rule):
        raise OperatorError(f"R.{name}: needs a function, its struct-info rule, and not {rule!r}")
    try:
        signature = inspect.signature(rule, eval_str=True)
    except NameError as problem:
        raise OperatorError(f"R.{name}: an annotation of its rule is unknown: {problem}") from None
    for p in signature.parameters.values():
        what = f"R.{name}: the parameter {p.name} of its struct-info rule"
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise OperatorError(f"{what} stands for several: an operator has a fixed number")
        if p.kind is not p.KEYWORD_ONLY and p.default not in (p.empty, None):
            raise OperatorError(f"{what} has a default: an attribute is keyword-only, behind *")
        if p.annotation is p.empty:
            raise OperatorError(f"{what} has no annotation: {_NEEDED[p.kind is p.KEYWORD_ONLY]}")
    try:
        operands, attrs = params_of(signature)
    except (AttributeError, KeyError) as problem:
        raise OperatorError(f"R.{name}: an annotation of its rule is no type: {problem}") from None
    for operand in operands:
        if operand.kind == "any":
            what = f"R.{name}: the annotation of {operand.name} is no type of an operand"
            raise OperatorError(f"{what}: {_NEEDED[False]}")
    return operands, attrs


_NEEDED = {
    False: "operands are TensorStructInfo, TupleStructInfo, ShapeStructInfo or PrimStructInfo",
    True: "attributes are int, float, bool, str, tuple[int, ...] or tuple[float, ...]",
}


def _guarded(name: str, rule: Rule) -> Callable[..., StructInfo]:
    """`rule`, whose failures say that it refuses its operands."""

    @wraps(rule)
    def guarded(*operands: StructInfo | None, **attrs: Any) -> StructInfo:
        try:
            result = rule(*operands, **attrs)
        except RelaxEgraphError:
            raise
        except Exception as problem:
            infos = ", ".join(map(str, operands))
            what = f"{type(problem).__name__}: {problem}"
            raise IllTyped(f"R.{name} of {infos}: its struct-info rule fails, {what}") from problem
        if not isinstance(result, StructInfo):
            raise OperatorError(
                f"R.{name}: its struct-info rule returns {result!r}, needs the struct info of the "
                'result, such as tensor((n, 4), "float32")'
            )
        return result

    return guarded
