"""Which ranks and dtypes an operand may have beside the operands before it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.op import Op
from relax_egraph.ir.requirements import recording
from relax_egraph.ir.struct_info import ShapeStructInfo, StructInfo, TensorStructInfo
from relax_egraph.prove.layouts import ON_IMAGES
from relax_egraph.prove.nodes import (
    Value,
    dtype_of,
    shape_of,
)
from relax_egraph.prove.typing import plain_attribute


@dataclass(frozen=True, slots=True)
class Alike:
    """Whether the tensors in a list have one rank, and one dtype."""

    rank: bool
    dtype: bool


@dataclass(frozen=True)
class Beside:
    """The operands that are known when an operator's one at a `place` is made, others `UNMADE`.

    They are on the left side if `assumed`.  Without an operator it is an unknown elementwise
    function.  The result is an operand of what is `around` it.  Tensors in a list are `alike`.
    """

    op: Op | None
    known: Sequence[Any]
    place: int
    assumed: bool
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    expected: tuple[dims.Dim, ...] | None = None
    around: "Beside | None" = None
    alike: Alike | None = None

    @property
    def shape(self) -> tuple[dims.Dim, ...] | None:
        """The shape that an elementwise operator needs, as broadcasts are written out."""
        tensors = [v for v in self.known if isinstance(v, Value)]
        if not self.assumed or not (self.op is None or self.op.elementwise):
            return None
        return shape_of(tensors[0]) if tensors else self.expected

    def accepted(self, dtypes: Sequence[str]) -> Sequence[str]:
        """The `dtypes` that the operator accepts."""
        if self.op is None or self.op.name in ON_IMAGES:
            return dtypes
        if self.alike is not None:
            return [dtype_of(self.known[0])] if self.alike.dtype and self.known else dtypes
        infos = [TensorStructInfo(None, d, -1) for d in dtypes]
        return [d for d, known in zip(dtypes, self.accept(infos), strict=True) if known]

    def of_rank(self, ranks: Sequence[int]) -> Sequence[int]:
        """The `ranks` that the operator accepts."""
        if self.op is None:
            return ranks
        if self.alike is not None:
            like = len(shape_of(self.known[0])) if self.alike.rank and self.known else None
            return [r for r in ranks if like in (None, r)]
        infos = [TensorStructInfo(None, None, r) for r in ranks]
        return [r for r, known in zip(ranks, self.accept(infos), strict=True) if known]

    def accept(self, infos: Sequence[TensorStructInfo]) -> tuple[bool, ...]:
        """Of which operands the operator, and those around it, do not refuse all others."""
        asked = self.links, tuple(infos)
        try:
            return _accept(*asked)
        except TypeError:  # an attribute is a list
            return _accept.__wrapped__(*asked)

    @property
    def links(self) -> "tuple[Link, ...]":
        """The applications on whose types it depends: this one, and those around it."""
        if self.op is None or not (self.assumed or self.op.name in ON_IMAGES):
            return ()
        applied = application(self.op, self.known, self.attrs)
        outer = self.around.links if self.around is not None else ()
        return (Link(self.op, self.place, applied), *outer)


class Application(NamedTuple):
    """The struct-info rule of an operator, the types of its operands, and its attributes."""

    rule: Callable[..., StructInfo]
    infos: tuple[Any, ...]
    attrs: tuple[tuple[str, Any], ...]


class Link(NamedTuple):
    """An operator whose operand at `place` is asked for; it may not be known how it is applied."""

    op: Op
    place: int
    applied: Application | None


@lru_cache(1 << 14)
def _accept(links: Sequence[Link], infos: Sequence[TensorStructInfo]) -> tuple[bool, ...]:
    return tuple(_accepts(links, info) for info in infos)


def _accepts(links: Sequence[Link], info: TensorStructInfo) -> bool:
    for op, place, applied in links:
        if op.name in ON_IMAGES:
            return info.ndim in (-1, len(ON_IMAGES[op.name].letters))
        if applied is None:
            return True
        infos = (*applied.infos[:place], info, *applied.infos[place + 1 :])
        try:
            result = result_of(applied._replace(infos=infos))
        except IllTyped:
            return False
        if not isinstance(result, TensorStructInfo):
            return True
        info = TensorStructInfo(None, result.dtype, result.ndim)
    return True


def application(op: Op, known: Sequence[Any], attrs: Mapping[str, Any]) -> Application | None:
    """How an operator is applied to `known` and operands of any type, if that is known."""
    if len(attrs) < len(op.attrs) or op.name in ON_IMAGES:
        return None
    kinds, required = _kinds(op)
    if any(kind not in _OF_KIND for kind in kinds[: len(known)]):
        return None
    infos = [_info(v, kind) for v, kind in zip(known, kinds, strict=False)]
    infos += [_OF_KIND.get(kind, _ANY) for kind in kinds[len(infos) : required]]
    plain = ((k, plain_attribute(v)) for k, v in attrs.items())
    return Application(op.rule, tuple(infos), tuple(plain))


@lru_cache(1 << 10)
def _kinds(op: Op) -> tuple[tuple[str, ...], int]:
    """The kinds of operands, and how many may not be left out."""
    return tuple(o.kind for o in op.operands), op.required


def refuses(applied: Application) -> bool:
    """Whether an operator refuses all operands of such types."""
    try:
        return _refuses(applied)
    except TypeError:  # an attribute is a list
        return _refuses.__wrapped__(applied)


@lru_cache(1 << 14)
def _refuses(applied: Application) -> bool:
    try:
        result_of(applied)
    except IllTyped:
        return True
    return False


def result_of(applied: Application) -> StructInfo | None:
    """The type of a result, if it is known; raises `IllTyped`."""
    try:
        with recording():
            return applied.rule(*applied.infos, **dict(applied.attrs))
    except IllTyped:
        raise
    except TypeError:  # an attribute is a symbol
        return None


UNMADE = object()
"""An operand that is not made yet."""

_ANY = TensorStructInfo(None, None, -1)
_OF_KIND: Mapping[str, Any] = {"tensor": _ANY, "shape": ShapeStructInfo(None, -1)}


def _info(value: Any, kind: str) -> Any:
    """The rank and the dtype of a known operand."""
    if isinstance(value, Value):
        return _tensor(dtype_of(value), len(shape_of(value)))
    return value if value is None or isinstance(value, TensorStructInfo) else _OF_KIND[kind]


@lru_cache(1 << 8)
def _tensor(dtype: str, rank: int) -> TensorStructInfo:
    return TensorStructInfo(None, dtype, rank)
