"""Relations between struct infos: declared and known, two branches, caller and callee."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Literal, TypeAlias

import sympy

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    Shape,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    symbols_of,
    tensor,
)

Relation: TypeAlias = Literal["implied", "unproven", "contradiction"]

_ORDER: tuple[Relation, ...] = ("implied", "unproven", "contradiction")


def relation(declared: StructInfo, known: StructInfo) -> Relation:
    """Whether `known` implies `declared`, contradicts it, or neither.

    An object may be declared to be anything.
    """
    match declared, known:
        case (ObjectStructInfo(), _) | (_, ObjectStructInfo()):
            return "implied"
        case TensorStructInfo(), TensorStructInfo():
            dtype = _unless_none(declared.dtype, known.dtype)
            if declared.shape is not None and declared.shape is known.shape:
                return dtype
            return _worst((dtype, _shapes(declared, known)))
        case ShapeStructInfo(), ShapeStructInfo():
            return _extents(declared.values, declared.ndim, known.values, known.ndim)
        case TupleStructInfo(fields=a), TupleStructInfo(fields=b):
            if len(a) != len(b):
                return "contradiction"
            return _worst(relation(x, y) for x, y in zip(a, b, strict=True))
        case PrimStructInfo(), PrimStructInfo():
            if declared.dtype != known.dtype:
                return "contradiction"
            if declared.value is None:
                return "implied"
            return "unproven" if known.value is None else _dims(declared.value, known.value)
        case FuncStructInfo(), FuncStructInfo():
            if declared.params is None or known.params is None:
                return relation(declared.ret, known.ret)
            if len(declared.params) != len(known.params):
                return "contradiction"
            return relation(declared.ret, known.ret)
        case _:
            return "contradiction"


def implies(known: StructInfo, declared: StructInfo) -> bool:
    """Whether the struct info `known` of a value proves the one `declared`."""
    match known, declared:
        case _, ObjectStructInfo():
            return True
        case ObjectStructInfo(), _:
            return False
        case TupleStructInfo(fields=a), TupleStructInfo(fields=b):
            return len(a) == len(b) and all(map(implies, a, b))
        case FuncStructInfo(), FuncStructInfo():
            return known == declared
        case _:
            return relation(declared, known) == "implied"


def stronger(declared: StructInfo, known: StructInfo) -> StructInfo:
    """`known` if it implies `declared`, else `declared`."""
    return known if implies(known, declared) else declared


def common(a: StructInfo, b: StructInfo) -> StructInfo:
    """The strongest struct info that both imply, as after a conditional."""
    match a, b:
        case TensorStructInfo(), TensorStructInfo():
            dtype = a.dtype if a.dtype == b.dtype else None
            if a.shape is not None and _same_shape(a, b):
                return TensorStructInfo(a.shape, dtype, a.ndim)
            return tensor(None, dtype, a.ndim if a.ndim == b.ndim else -1)
        case TupleStructInfo(fields=x), TupleStructInfo(fields=y) if len(x) == len(y):
            return TupleStructInfo(tuple(common(p, q) for p, q in zip(x, y, strict=True)))
        case ShapeStructInfo(), ShapeStructInfo():
            if a.values is not None and relation(a, b) == "implied":
                return a
            return ShapeStructInfo(None, a.ndim if a.ndim == b.ndim else -1)
        case PrimStructInfo(), PrimStructInfo() if a.dtype == b.dtype:
            return a if relation(a, b) == "implied" else PrimStructInfo(a.dtype)
        case _:
            same = type(a) is type(b) and relation(a, b) == relation(b, a) == "implied"
            return a if same else ObjectStructInfo()


def bind(params: Iterable[StructInfo], args: Iterable[StructInfo]) -> dict[str, Dim]:
    """The values of the symbols of `params` in a call with `args`."""
    values: dict[str, Dim] = {}
    for param, arg in zip(params, args, strict=True):
        match param, arg:
            case TensorStructInfo(), TensorStructInfo():
                _bind_dims(param.dims, arg.dims, values)
            case ShapeStructInfo(), ShapeStructInfo():
                _bind_dims(param.values, arg.values, values)
            case PrimStructInfo(), PrimStructInfo():
                if param.value is not None and arg.value is not None:
                    _bind_dims((param.value,), (arg.value,), values)
            case TupleStructInfo(fields=a), TupleStructInfo(fields=b) if len(a) == len(b):
                values |= bind(a, b)
            case _:
                pass
    return values


def bare_symbols(info: StructInfo) -> set[str]:
    """The symbols that a value of `info` binds: those that are a whole dimension of it."""
    shape: Shape
    match info:
        case TensorStructInfo():
            shape = info.dims or ()
        case ShapeStructInfo(values=values):
            shape = values or ()
        case PrimStructInfo(value=value):
            shape = () if value is None else (value,)
        case TupleStructInfo(fields=fields):
            return set[str]().union(*map(bare_symbols, fields))
        case _:
            return set()
    return {dims.text(d) for d in shape if not isinstance(d, int) and d.is_Symbol}


def free_symbols(info: StructInfo) -> frozenset[str]:
    """The symbols of `info` that its context binds; a function binds those of its parameters."""
    match info:
        case FuncStructInfo(params=params, ret=ret):
            known = params or ()
            used = free_symbols(ret).union(*map(free_symbols, known))
            return used.difference(*map(bare_symbols, known))
        case TupleStructInfo(fields=fields):
            return frozenset[str]().union(*map(free_symbols, fields))
        case _:
            return symbols_of(info)


def substituted(info: StructInfo, values: Mapping[str, Dim]) -> StructInfo:
    """`info` with `values` for its symbols; a shape with any other symbol becomes unknown."""

    def put(shape: Shape | None) -> Shape | None:
        if shape is None or any(dims.symbols(d) - values.keys() for d in shape):
            return None
        return tuple(dims.substitute(d, values) for d in shape)

    return _mapped(info, put)


def in_scope(info: StructInfo, symbols: Collection[str]) -> StructInfo:
    """`info` where only `symbols` are bound; a shape with any other symbol becomes unknown."""
    if free_symbols(info).issubset(symbols):
        return info
    match info:
        case TupleStructInfo(fields=fields):
            return TupleStructInfo(tuple(in_scope(f, symbols) for f in fields))
        case FuncStructInfo(params=params, ret=ret, purity=purity):
            known = params or ()
            own = {*symbols}.union(*map(bare_symbols, known))
            weaker = tuple(in_scope(p, own) for p in known)
            return FuncStructInfo(params and weaker, in_scope(ret, own), purity)
        case _:
            return substituted(info, {s: dims.symbol(s) for s in symbols})


def _mapped(info: StructInfo, put: Callable[[Shape | None], Shape | None]) -> StructInfo:
    match info:
        case TensorStructInfo():
            return tensor(put(info.dims), info.dtype, info.ndim)
        case ShapeStructInfo():
            return ShapeStructInfo(put(info.values), info.ndim)
        case PrimStructInfo(dtype=dtype, value=value):
            known = put(None if value is None else (value,))
            return PrimStructInfo(dtype, known[0] if known else None)
        case TupleStructInfo(fields=fields):
            return TupleStructInfo(tuple(_mapped(f, put) for f in fields))
        case FuncStructInfo() | ObjectStructInfo():
            return info


def _bind_dims(params: Shape | None, args: Shape | None, values: dict[str, Dim]) -> None:
    if params is None or args is None or len(params) != len(args):
        return
    for param, arg in zip(params, args, strict=True):
        if isinstance(param, sympy.Symbol):
            values.setdefault(param.name, arg)


def _worst(relations: Iterable[Relation]) -> Relation:
    return _ORDER[max(map(_ORDER.index, relations), default=0)]


def _unless_none(declared: str | None, known: str | None) -> Relation:
    if declared is None or declared == known:
        return "implied"
    return "unproven" if known is None else "contradiction"


def _shapes(declared: TensorStructInfo, known: TensorStructInfo) -> Relation:
    extents = _extents(declared.dims, declared.ndim, known.dims, known.ndim)
    computed = declared.shape is not None and declared.dims is None
    return _worst((extents, "unproven" if computed else "implied"))


def _extents(a: Shape | None, a_ndim: int, b: Shape | None, b_ndim: int) -> Relation:
    """Declared extents `a` against known extents `b`."""
    if a_ndim >= 0 and b_ndim >= 0 and a_ndim != b_ndim:
        return "contradiction"
    if a is None:
        return "unproven" if a_ndim >= 0 > b_ndim else "implied"
    if b is None:
        return "unproven"
    return _worst(_dims(x, y) for x, y in zip(a, b, strict=True))


def _dims(declared: Dim, known: Dim) -> Relation:
    if declared == known or dims.equal(declared, known):
        return "implied"
    return "contradiction" if dims.distinct(declared, known) else "unproven"


def _same_shape(a: TensorStructInfo, b: TensorStructInfo) -> bool:
    return a.shape is b.shape or (
        a.dims is not None
        and b.dims is not None
        and len(a.dims) == len(b.dims)
        and all(dims.equal(x, y) for x, y in zip(a.dims, b.dims, strict=True))
    )
