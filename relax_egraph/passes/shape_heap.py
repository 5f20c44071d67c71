"""The shape heap of one function during lowering: a slot for each dimension."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import sympy

from relax_egraph.errors import IllFormed
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    Expr,
    PrimValue,
    ShapeExpr,
    StringImm,
    TupleGetItem,
    Var,
)
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    PrimStructInfo,
    Shape,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relax_egraph.ir.templates import extents_of, replace_extents
from relax_egraph.passes.analyses.needed_dims import is_computed, may_fail

_LONG = 1000
"""The most characters of a dimension; the operands of a longer one get slots of their own.

The machine bounds the length of the texts that it reads.  Sizes of arenas are maxima of many sums
with common parts.
"""

Emit: TypeAlias = Callable[[Expr, str | None], Var]


@dataclass(frozen=True, slots=True)
class Site:
    """A value whose extents are matched, and its description in the message of a failure."""

    where: str
    value: Expr
    info: StructInfo
    extents: tuple[Dim, ...]


@dataclass(slots=True)
class _Known:
    """The state at a point of the function: filled slots and loaded values.

    The dimensions `expected` are needed if the rest of the function runs to its end.
    """

    filled: set[Dim] = field(default_factory=set[Dim])
    loaded: dict[Expr, Var] = field(default_factory=dict[Expr, Var])
    expected: tuple[Dim, ...] = ()

    def copy(self) -> "_Known":
        return _Known(set(self.filled), dict(self.loaded))


class ShapeHeap:
    """Emits the reads and writes of the heap `var` of the function `name`, through `emit`."""

    def __init__(self, name: str, var: Var, emit: Emit) -> None:
        self.var = var
        self._name = name
        self._emit = emit
        self._slots: dict[Dim, int] = {}
        self._known = _Known()
        self.is_used = False

    @property
    def size(self) -> int:
        """The number of slots."""
        return len(self._slots)

    @contextmanager
    def scope(self) -> Generator[None]:
        """The scope of a branch: its bindings, slots and loads are forgotten after it."""
        before = self._known
        self._known = before.copy()
        yield
        self._known = before

    def begin(self, expected: Sequence[Dim], sites: Sequence[Site] = ()) -> None:
        """Begin a function or a branch that needs the dimensions `expected`.

        They are computed together as soon as their symbols are known; dimensions that may fail are
        computed at their use.  Then `compare` the `sites`.
        """
        self._known.expected = tuple(expected)
        self.compare(sites)

    # --- reading ----------------------------------------------------------------------

    def shape(self, shape: ShapeExpr) -> Expr:
        """`shape` as a value at run time."""
        if all(isinstance(d, int) for d in shape.values):
            return shape
        if shape not in self._known.loaded:
            extents = [StringImm(self._extent(d)) for d in shape.values]
            self._known.loaded[shape] = self._emit(
                call("vm.make_shape", self.var, *extents), "shape"
            )
        return self._known.loaded[shape]

    def prim(self, value: PrimValue) -> Expr:
        """`value` as a value at run time."""
        if not isinstance(value.value, sympy.Expr):
            return value
        if value not in self._known.loaded:
            slot = self._slot(self._name, value.value)
            loaded = self._emit(call("vm.load_prim", self.var, PrimValue(slot)), "dim")
            self._known.loaded[value] = loaded
        return self._known.loaded[value]

    def _extent(self, dim: Dim) -> str:
        return str(dim) if isinstance(dim, int) else f"@{self._slot(self._name, dim)}"

    def _slot(self, where: str, dim: Dim) -> int:
        """The slot of `dim`; emits its computation if the slot is not filled."""
        self.is_used = True
        if dim not in self._known.filled:
            for name in sorted(dims.symbols(dim)):
                if dims.symbol(name) not in self._known.filled:
                    raise IllFormed(
                        f"{where}: the dimension {dims.text(dim)} is not known: "
                        f"no parameter and no match_cast before binds {name} by itself"
                    )
            self._compute_now([dim])
        return self._slots[dim]

    def _compute(self, needed: Sequence[Dim]) -> None:
        """Compute the dimensions `needed`, and expected ones that are ready and cannot fail."""
        known = self._known
        new = [d for d in dict.fromkeys((*needed, *known.expected)) if d not in known.filled]
        now = [d for d in new if self._can_be_computed(d)]
        known.expected = tuple(d for d in known.expected if d not in known.filled)
        if now:
            self._compute_now(now)

    def _can_be_computed(self, dim: Dim) -> bool:
        symbols = map(dims.symbol, dims.symbols(dim))
        return self._known.filled.issuperset(symbols) and not may_fail(dim)

    def _compute_now(self, computed: Sequence[Dim]) -> None:
        """Emit one instruction that computes all of `computed`."""
        self.is_used = True
        args: list[Expr] = []
        for dim in (part for whole in computed for part in _parts(whole)):
            if dim not in self._known.filled:
                slot = self._slots.setdefault(dim, len(self._slots))
                args += [PrimValue(slot), StringImm(self._over_slots(dim))]
                self._known.filled.add(dim)
        self._emit(call("vm.compute_shapes", self.var, *args), "_")

    def _over_slots(self, dim: Dim) -> str:
        """The text of `dim` that the machine evaluates, in terms of filled slots."""
        if not isinstance(dim, int) and (operands := _operands(dim)):
            values = (
                sympy.Integer(d) if isinstance(d, int) else self._in_slot(d) for d in operands
            )
            return dims.text(dims.canonical(dim.func(*values)))
        over = {s: self._in_slot(dims.symbol(s)) for s in dims.symbols(dim)}
        return dims.text(dims.substitute(dim, over))

    def _in_slot(self, dim: Dim) -> sympy.Symbol:
        return dims.symbol(f"@{self._slots[dim]}")

    # --- matching ---------------------------------------------------------------------

    def match(self, where: str, value: Expr, info: StructInfo) -> list[Site]:
        """Check `value` against `info` and store its new symbols.

        Returns the sites with extents such as ``n * 4``, for `compare`.
        """
        message, expected = StringImm(where), StringImm(str(info))
        match info:
            case TensorStructInfo(dtype=dtype, ndim=ndim):
                rank = PrimValue(ndim)
                self._check("tensor", value, message, expected, rank, StringImm(dtype or ""))
                return self._store(Site(where, value, info, info.dims or ()))
            case ShapeStructInfo(values=values, ndim=ndim):
                self._check("shape", value, message, expected, PrimValue(ndim))
                return self._store(Site(where, value, info, values or ()))
            case PrimStructInfo(value=extent) if extent is not None:
                return self._store(Site(where, value, info, (extent,)))
            case PrimStructInfo(dtype=dtype) if dtype.startswith("int"):
                self._match(Site(where, value, info, ()), ["_"])
                return []
            case PrimStructInfo(dtype=dtype):
                self._check("prim", value, message, expected, StringImm(dtype))
                return []
            case FuncStructInfo():
                self._check("func", value, message, expected)
                return []
            case TupleStructInfo(fields=fields):
                self._check("tuple", value, message, expected, PrimValue(len(fields)))
                return [
                    site
                    for i, field_info in enumerate(fields)
                    for site in self._match_field(f"{where}, field {i}", value, i, field_info)
                ]
            case _:
                return []

    def compare(self, sites: Sequence[Site]) -> None:
        """Check the extents that are computed from symbols, after all symbols are stored."""
        self._compute([d for site in sites for d in site.extents if is_computed(d)])
        for site in sites:
            self._match(site, [self._compared(site, d) for d in site.extents])

    def refuse(self, value: Expr, known: Shape, wanted: Shape, refusal: str) -> None:
        """Check the extents of `value`, whose shape is `known`, that differ from `wanted`."""
        changed = [w if w != k else None for k, w in zip(known, wanted, strict=True)]
        mentioned = (*(d for d in changed if d is not None), *extents_of(refusal))
        self._compute([d for d in mentioned if is_computed(d)])
        patterns = [
            "_" if d is None else str(d) if isinstance(d, int) else f"{dims.text(d)} == {slot}"
            for d, slot in ((d, "" if d is None else self._extent(d)) for d in changed)
        ]
        message = replace_extents(refusal, lambda dim: f"{{{self._extent(dim)}}}")
        self.is_used = True
        texts = map(StringImm, (message, *patterns))
        self._emit(call("vm.match_operand", value, self.var, *texts), "_")

    def _match_field(self, where: str, value: Expr, index: int, info: StructInfo) -> list[Site]:
        return self.match(where, self._emit(TupleGetItem(value, index), None), info)

    def _check(self, kind: str, *args: Expr) -> None:
        self._emit(call(f"vm.check_{kind}_info", *args), "_")

    def _store(self, site: Site) -> list[Site]:
        patterns = [self._stored(site, d) for d in site.extents]
        if any(p != "_" for p in patterns):
            self._match(site, patterns)
        return [site] if any(map(is_computed, site.extents)) else []

    def _match(self, site: Site, patterns: list[str]) -> None:
        self.is_used = True
        op = "vm.match_prim" if isinstance(site.info, PrimStructInfo) else "vm.match_shape"
        texts = (site.where, str(site.info), *patterns)
        self._emit(call(op, site.value, self.var, *map(StringImm, texts)), "_")

    def _stored(self, site: Site, dim: Dim) -> str:
        if isinstance(dim, int):
            return str(dim)
        if is_computed(dim):
            return "_"
        if dim in self._known.filled:
            return self._compared(site, dim, symbols_too=True)
        self._known.filled.add(dim)
        return f"{dims.text(dim)} -> @{self._slots.setdefault(dim, len(self._slots))}"

    def _compared(self, site: Site, dim: Dim, *, symbols_too: bool = False) -> str:
        if not symbols_too and not is_computed(dim):
            return "_"
        return f"{dims.text(dim)} == @{self._slot(site.where, dim)}"


def _parts(dim: Dim) -> Iterator[Dim]:
    """A long `dim` after its operands, recursively, that are neither numbers nor symbols."""
    for operand in _operands(dim):
        if is_computed(operand):
            yield from _parts(operand)
    yield dim


def _operands(dim: Dim) -> tuple[Dim, ...]:
    """The operands of a long sum, product, minimum or maximum; none of any other dimension."""
    if isinstance(dim, int) or len(dims.text(dim)) <= _LONG:
        return ()
    if not isinstance(dim, sympy.Add | sympy.Mul | sympy.Min | sympy.Max):
        return ()
    operands = tuple(map(dims.canonical, dim.args))
    return operands if all(dims.divides(1, d) for d in operands) else ()
