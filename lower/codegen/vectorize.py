"""Plans of vectorized loops: which stores reduce, and which values are loop-invariant.

The kind ``vectorized`` promises independent iterations.  Loops that visibly break the promise run
serially.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from relax_egraph.lower.codegen.postorder import postorder
from relax_egraph.lower.codegen.scope import MEMORY_TYPES, REGISTER_TYPES
from relax_egraph.lower.emit.target import Target
from relax_egraph.tir.expr import (
    COMPARISONS,
    Binary,
    Buffer,
    BufferLoad,
    Cast,
    Imm,
    Intrinsic,
    TirExpr,
    TirVar,
)
from relax_egraph.tir.functions import INTRINSICS, SIMPLE
from relax_egraph.tir.rewrite import nodes, operands, statements, stores, variables
from relax_egraph.tir.stmt import For, IfThenElse, Seq, Stmt, Store, TensorIntrinsic, TirBlock

HEAVY = frozenset(INTRINSICS) - SIMPLE - {"sqrt", "rsqrt"}
"""Intrinsics of many instructions: computing several vectors at once gains nothing."""

FEW_REGISTERS = 16
"""The vector registers that the constants of one heavy intrinsic fill."""

SHORT = 4
"""The maximal operations of a map that takes less time than the end of an iteration."""

_COMBINES = {"+", "*", "min", "max", "and", "or"}


@dataclass(frozen=True, slots=True)
class Reduction:
    """A store ``place = place <kind> term``; for ``fma``, `term` holds both factors."""

    kind: str
    term: tuple[TirExpr, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan of a loop: its lanes, `unroll` vectors at a time, `cost` operations for each vector.

    `reductions` are by identity of the store.  `lets` are axes with the same value in all
    iterations, `once` the loop-invariant values, which are computed before the loop.
    """

    lanes: int
    unroll: int
    cost: int
    reductions: Mapping[int, Reduction]
    lets: tuple[tuple[TirVar, TirExpr], ...]
    once: tuple[TirExpr, ...]


def plan(loop: For, target: Target) -> Plan | None:
    """The plan for `loop`, or ``None`` if its iterations must run one after the other."""
    inner = tuple(statements(loop.body))
    if any(isinstance(s, For | TensorIntrinsic) or _has_own_state(s) for s in inner):
        return None
    body = _Body(loop)
    reductions: dict[int, Reduction] = {}
    for store in stores(loop.body):
        if body.moves(store.indices):
            if not body.is_independent(store):
                return None
        elif (reduction := body.reduction(store)) is not None:
            reductions[id(store)] = reduction
        else:
            return None
    values = [s.value for s in stores(loop.body)]
    operations = [n for v in values for n in _value_nodes(v)]
    heavy = sum(isinstance(n, Intrinsic) and n.name in HEAVY for n in operations)
    bits = max(_bits(n.dtype) for n in (*operations, *_places(loop.body)))
    if heavy:
        unroll = 2 if reductions and target.vector_registers > FEW_REGISTERS else 1
    else:
        unroll = 4 if reductions else (2 if len(operations) <= SHORT else 1)
    lanes = target.lanes(bits)
    return Plan(
        lanes=_no_wider(lanes, loop.extent),
        unroll=unroll,
        cost=len(operations) + 16 * heavy,
        reductions=reductions,
        lets=tuple(body.lets),
        once=tuple(body.once()),
    )


def _no_wider(lanes: int, extent: TirExpr) -> int:
    """`lanes`, or the `extent` of a loop that is a single narrower vector, which needs no mask."""
    if not isinstance(extent, Imm) or not 2 <= extent.value < lanes:
        return lanes
    turns = int(extent.value)
    return turns if turns & (turns - 1) == 0 else lanes


def upper_bound(extent: TirExpr) -> int | None:
    """A constant upper bound of `extent`, if one is visible."""
    match extent:
        case Imm(value=value):
            return int(value)
        case Binary(kind="min", a=a, b=b):
            return min((n for n in map(upper_bound, (a, b)) if n is not None), default=None)
        case _:
            return None


def _has_own_state(stmt: Stmt) -> bool:
    return isinstance(stmt, TirBlock) and (bool(stmt.allocs) or stmt.init is not None)


def _bits(dtype: str) -> int:
    return max(MEMORY_TYPES[dtype].bits, REGISTER_TYPES[dtype].bits)


def _places(body: Stmt) -> Iterator[Buffer]:
    return (s.buffer for s in stores(body))


def _value_nodes(value: TirExpr) -> Iterator[TirExpr]:
    """The nodes of `value` that compute data: not indices, nor comparisons of indices."""
    todo, seen = [value], set[int]()
    while todo:
        e = todo.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        compares_indices = isinstance(e, Binary) and e.kind in COMPARISONS and e.a.dtype == "int64"
        is_index = e.dtype == "int64" and not isinstance(e, BufferLoad | Cast)
        if isinstance(e, BufferLoad):
            yield e
        elif not (compares_indices or is_index):
            yield e
            todo.extend(operands(e))
        else:
            todo.extend(o for o in operands(e) if not isinstance(o, Imm | TirVar))


@dataclass(slots=True)
class _Body:
    """The body of a loop: the variables that vary between iterations, and the invariant ones.

    `moving` maps each varying variable to whether its value is distinct in every iteration.
    """

    loop: For
    moving: dict[TirVar, bool] = field(default_factory=dict[TirVar, bool])
    lets: list[tuple[TirVar, TirExpr]] = field(default_factory=list[tuple[TirVar, TirExpr]])

    def __post_init__(self) -> None:
        self.moving[self.loop.var] = True
        for stmt in statements(self.loop.body):
            for axis in stmt.axes if isinstance(stmt, TirBlock) else ():
                if self.moves((axis.binding,)):
                    self.moving[axis.var] = self._is_distinct(axis.binding)
                elif any(isinstance(n, BufferLoad) for n in nodes(axis.binding)):
                    self.moving[axis.var] = False
                else:
                    self.lets.append((axis.var, axis.binding))

    def moves(self, exprs: tuple[TirExpr, ...]) -> bool:
        """Whether any of `exprs` varies between iterations, as far as variables show."""
        return any(v in self.moving for e in exprs for v in variables(e))

    def _is_distinct(self, expr: TirExpr) -> bool:
        match expr:
            case TirVar():
                return self.moving.get(expr, False)
            case Binary(kind="+" | "-", a=a, b=b):
                return self._is_distinct(a) != self._is_distinct(b) and not (
                    self.moves((a,)) and self.moves((b,))
                )
            case (
                Binary(kind="*", a=a, b=Imm(value=factor))
                | Binary(kind="*", a=Imm(value=factor), b=a)
            ):
                return factor != 0 and self._is_distinct(a)
            case _:
                return False

    def is_independent(self, store: Store) -> bool:
        """Whether no two iterations update one element: a sum over places must not lose terms."""
        updates = any(
            isinstance(n, BufferLoad) and n.buffer is store.buffer for n in nodes(store.value)
        )
        return not updates or any(self._is_distinct(i) for i in store.indices)

    def reduction(self, store: Store) -> Reduction | None:
        """`store` as a reduction, if it is one and nothing else in the loop accesses its place."""
        reads = [
            n
            for s in stores(self.loop.body)
            for n in nodes(s.value)
            if isinstance(n, BufferLoad) and n.buffer is store.buffer
        ]
        writers = [s for s in stores(self.loop.body) if s.buffer is store.buffer]
        is_read_by_control = any(
            isinstance(n, BufferLoad) and n.buffer is store.buffer
            for e in _controls(self.loop.body)
            for n in nodes(e)
        )
        if len(reads) != 1 or len(writers) != 1 or is_read_by_control:
            return None
        place = reads[0]
        if place.indices != store.indices:
            return None
        match store.value:
            case Binary(kind=kind, a=a, b=b) if kind in _COMBINES and a is place:
                return Reduction(kind, (b,))
            case Binary(kind=kind, a=a, b=b) if kind in _COMBINES and b is place:
                return Reduction(kind, (a,))
            case Intrinsic(name="fma", args=(a, b, c)) if c is place:
                return Reduction("+", (a, b))
            case _:
                return None

    def once(self) -> Iterator[TirExpr]:
        """The largest loop-invariant parts of the stored values."""
        written = {s.buffer for s in stores(self.loop.body)}
        todo = [s.value for s in unconditional(self.loop.body)]
        differs: dict[int, bool] = {}
        for value in todo:
            for e in postorder(value, differs):
                own = e in self.moving if isinstance(e, TirVar) else False
                read = isinstance(e, BufferLoad) and e.buffer in written
                differs[id(e)] = own or read or any(differs[id(o)] for o in operands(e))
        done = set[int]()
        while todo:
            e = todo.pop()
            if id(e) in done:
                continue
            done.add(id(e))
            if differs[id(e)]:
                todo.extend(operands(e))
            elif not isinstance(e, Imm) and e.dtype != "int64":
                yield e


def _controls(body: Stmt) -> Iterator[TirExpr]:
    """The expressions that decide where and whether the stores of the body happen."""
    for s in statements(body):
        match s:
            case IfThenElse(condition=condition):
                yield condition
            case TirBlock(axes=axes):
                yield from (a.binding for a in axes)
            case Store(indices=indices):
                yield from indices
            case _:
                pass


def unconditional(body: Stmt) -> Iterator[Store]:
    """The stores of `body` that happen in every iteration."""
    match body:
        case Store():
            yield body
        case Seq(body=parts):
            for part in parts:
                yield from unconditional(part)
        case TirBlock(body=inner):
            yield from unconditional(inner)
        case _:
            pass
