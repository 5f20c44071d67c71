"""How a vectorized loop can run on lanes: which stores reduce, what is computed once before it.

That the turns of the loop are independent is what ``vectorized`` promises; here is checked what
a loop visibly breaks of it, and such a loop runs as a serial one.
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
"""Functions of so many instructions that running several at once gains nothing."""

_COMBINES = {"+", "*", "min", "max", "and", "or"}


@dataclass(frozen=True, slots=True)
class Reduction:
    """A store of the form ``place = place <kind> term``; of ``fma``, `term` is the two factors."""

    kind: str
    term: tuple[TirExpr, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """How to run a loop: so many lanes, `unroll` vectors at a time, `cost` operations for each.

    `reductions` are by identity of the store.  `lets` are axes that are the same in all turns,
    `once` the values to compute before the loop.
    """

    lanes: int
    unroll: int
    cost: int
    reductions: Mapping[int, Reduction]
    lets: tuple[tuple[TirVar, TirExpr], ...]
    once: tuple[TirExpr, ...]


def plan(loop: For, target: Target) -> Plan | None:
    """The plan for `loop`, or ``None`` if it has to run one turn after the other."""
    inner = tuple(statements(loop.body))
    if any(isinstance(s, For | TensorIntrinsic) or _has_own_state(s) for s in inner):
        return None
    body = _Body(loop)
    reductions: dict[int, Reduction] = {}
    for store in stores(loop.body):
        if body.moves(store.indices):
            if not body.is_independent(store):
                return None
        elif (found := body.reduction(store)) is not None:
            reductions[id(store)] = found
        else:
            return None
    values = [s.value for s in stores(loop.body)]
    operations = [n for v in values for n in _value_nodes(v)]
    heavy = sum(isinstance(n, Intrinsic) and n.name in HEAVY for n in operations)
    bits = max(_bits(n.dtype) for n in (*operations, *_places(loop.body)))
    unroll = (4 if not heavy else 2) if reductions else 1
    lanes = target.lanes(bits)
    return Plan(
        lanes=lanes if heavy else _no_wider(lanes, loop.extent),
        unroll=unroll,
        cost=len(operations) + 16 * heavy,
        reductions=reductions,
        lets=tuple(body.lets),
        once=tuple(body.once()),
    )


def _no_wider(lanes: int, extent: TirExpr) -> int:
    """`lanes`, or the `extent` of a loop that is one narrower vector: that needs no mask."""
    if not isinstance(extent, Imm) or not 2 <= extent.value < lanes:
        return lanes
    turns = int(extent.value)
    return turns if turns & (turns - 1) == 0 else lanes


def upper_bound(extent: TirExpr) -> int | None:
    """A number that `extent` does not exceed, if one can be seen."""
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
    """The nodes of `value` that are computed with, other than indices and comparisons of them."""
    todo, seen = [value], set[int]()
    while todo:
        e = todo.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        of_indices = isinstance(e, Binary) and e.kind in COMPARISONS and e.a.dtype == "int64"
        is_index = e.dtype == "int64" and not isinstance(e, BufferLoad | Cast)
        if isinstance(e, BufferLoad):
            yield e
        elif not (of_indices or is_index):
            yield e
            todo.extend(operands(e))
        else:
            todo.extend(o for o in operands(e) if not isinstance(o, Imm | TirVar))


@dataclass(slots=True)
class _Body:
    """A loop's body: the variables that differ from turn to turn, and those that do not.

    `moving` says of the former whether they are even: of another value in each turn.
    """

    loop: For
    moving: dict[TirVar, bool] = field(default_factory=dict[TirVar, bool])
    lets: list[tuple[TirVar, TirExpr]] = field(default_factory=list[tuple[TirVar, TirExpr]])

    def __post_init__(self) -> None:
        self.moving[self.loop.var] = True
        for stmt in statements(self.loop.body):
            for axis in stmt.axes if isinstance(stmt, TirBlock) else ():
                if self.moves((axis.binding,)):
                    self.moving[axis.var] = self._is_even(axis.binding)
                elif any(isinstance(n, BufferLoad) for n in nodes(axis.binding)):
                    self.moving[axis.var] = False
                else:
                    self.lets.append((axis.var, axis.binding))

    def moves(self, exprs: tuple[TirExpr, ...]) -> bool:
        """Whether any of `exprs` differs from turn to turn, as far as variables tell."""
        return any(v in self.moving for e in exprs for v in variables(e))

    def _is_even(self, expr: TirExpr) -> bool:
        match expr:
            case TirVar():
                return self.moving.get(expr, False)
            case Binary(kind="+" | "-", a=a, b=b):
                return self._is_even(a) != self._is_even(b) and not (
                    self.moves((a,)) and self.moves((b,))
                )
            case (
                Binary(kind="*", a=a, b=Imm(value=factor))
                | Binary(kind="*", a=Imm(value=factor), b=a)
            ):
                return factor != 0 and self._is_even(a)
            case _:
                return False

    def is_independent(self, store: Store) -> bool:
        """Whether no two turns update one element: a sum over places must not lose terms."""
        updates = any(
            isinstance(n, BufferLoad) and n.buffer is store.buffer for n in nodes(store.value)
        )
        return not updates or any(self._is_even(i) for i in store.indices)

    def reduction(self, store: Store) -> Reduction | None:
        """`store` as a reduction, if it is one and nothing else in the loop sees its place."""
        touched = [
            n
            for s in stores(self.loop.body)
            for n in nodes(s.value)
            if isinstance(n, BufferLoad) and n.buffer is store.buffer
        ]
        writers = [s for s in stores(self.loop.body) if s.buffer is store.buffer]
        seen = any(
            isinstance(n, BufferLoad) and n.buffer is store.buffer
            for e in _controls(self.loop.body)
            for n in nodes(e)
        )
        if len(touched) != 1 or len(writers) != 1 or seen:
            return None
        place = touched[0]
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
        """The largest parts of the stored values that are the same in all turns."""
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
    """What decides where the body's stores go, and whether they happen."""
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
    """The stores of `body` that happen in every turn."""
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
