"""Static analyses of loop functions: symbols, buffers, work, and identity up to names."""

from collections.abc import Hashable, Iterable
from functools import lru_cache

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.tir.expr import (
    Binary,
    Buffer,
    BufferLoad,
    Cast,
    DimSymbol,
    Imm,
    Intrinsic,
    Not,
    Select,
    TirExpr,
    TirVar,
)
from relax_egraph.tir.functions import SIMPLE
from relax_egraph.tir.rewrite import (
    expressions,
    loads,
    nodes,
    operands,
    postorder,
    statements,
    stores,
)
from relax_egraph.tir.stmt import (
    For,
    IfThenElse,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    TensorIntrinsic,
    TirBlock,
)

EXPENSIVE = 8
"""The cost of a division or a transcendental function in `work`."""


def symbols_of_stmt(stmt: Stmt) -> frozenset[str]:
    """The dimension symbols in the extents, indices, values and local buffers of `stmt`."""
    used = {n.name for e in expressions(stmt) for n in nodes(e) if isinstance(n, DimSymbol)}
    return frozenset(used) | symbols_of_buffers(private_buffers(stmt))


def private_buffers(stmt: Stmt) -> list[Buffer]:
    """The buffers of the blocks in `stmt`."""
    return [b for s in statements(stmt) if isinstance(s, TirBlock) for b in s.allocs]


def buffers_of(stmt: Stmt) -> list[Buffer]:
    """The buffers that `stmt` reads, writes or passes to tensor intrinsics, each once."""
    buffers = {access.buffer: None for access in (*loads(stmt), *stores(stmt))}
    for call in statements(stmt):
        if isinstance(call, TensorIntrinsic):
            buffers.update(dict.fromkeys(buffer for buffer, _ in call.buffers))
    return list(buffers)


def symbols_of_buffers(buffers: Iterable[Buffer]) -> frozenset[str]:
    """The dimension symbols in the shapes of `buffers`."""
    return frozenset(name for b in buffers for dim in b.shape for name in dims.symbols(dim))


def unbound_symbols(params: Iterable[Buffer], used: Iterable[str]) -> tuple[str, ...]:
    """The symbols that are no whole dimension of a parameter, sorted: `PrimFunc.scalars`.

    `used` are the symbols of the body; the symbols of the parameters' shapes are added.
    """
    known = tuple(params)
    bound = {dims.text(d) for b in known for d in b.shape if not isinstance(d, int)}
    return tuple(sorted((symbols_of_buffers(known) | set(used)) - bound))


def tree_size(expr: TirExpr) -> int:
    """The number of nodes of `expr` as a tree, in which shared nodes count each time."""
    size: dict[int, int] = {}
    for e in postorder(expr):
        size[id(e)] = 1 + sum(size[id(o)] for o in operands(e))
    return size[id(expr)]


def work(expr: TirExpr) -> int:
    """The simple operations of one evaluation of `expr`; 0 if it only moves data.

    Arithmetic on indices is not counted.
    """
    total = 0
    todo = [expr]
    seen: set[int] = set()
    while todo:
        e = todo.pop()
        if id(e) in seen or isinstance(e, BufferLoad):
            continue
        seen.add(id(e))
        todo.extend(operands(e))
        match e:
            case Intrinsic(name=name):
                total += 1 if name in SIMPLE else EXPENSIVE
            case Binary(kind=kind):
                total += EXPENSIVE if kind in ("/", "//", "%") else 1
            case Not() | Cast() | Select():
                total += 1
            case _:
                pass
    return total


@lru_cache(1 << 10)
def structural_key(function: PrimFunc) -> Hashable:
    """A key that two functions share exactly if they are equal up to names.

    Names of buffers, variables and symbols are ignored, names of blocks and attributes are not.
    """
    return _Key().function(function)


class _Key:
    """Numbers buffers, variables and symbols by first appearance."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._memo: dict[int, int] = {}
        self._parts: dict[Hashable, int] = {}

    def function(self, f: PrimFunc) -> Hashable:
        for name in f.symbols:
            self._number(name)
        params = tuple(self._declared(b) for b in f.params)
        allocs = tuple(self._declared(b) for b in f.allocs)
        scalars = tuple(self._number(s) for s in f.scalars)
        attrs = tuple(sorted(f.attrs.items(), key=lambda item: item[0]))
        body = self._stmt(f.body)
        return (params, f.num_outputs, scalars, allocs, attrs, body, tuple(self._parts))

    def _number(self, thing: object) -> int:
        return self._numbers.setdefault(thing, len(self._numbers))

    def _dim(self, dim: Dim) -> Hashable:
        new = {name: dims.symbol(f"s{self._number(name)}") for name in sorted(dims.symbols(dim))}
        return dims.substitute(dim, new)

    def _declared(self, b: Buffer) -> Hashable:
        return (self._number(b), tuple(self._dim(d) for d in b.shape), b.dtype, b.scope)

    def _expr(self, e: TirExpr) -> int:
        """The number of `e` in the list of distinct nodes, which is part of the key."""
        if id(e) not in self._memo:
            for node in postorder(e):
                if id(node) not in self._memo:
                    number = self._parts.setdefault(self._part(node), len(self._parts))
                    self._memo[id(node)] = number
        return self._memo[id(e)]

    def _part(self, e: TirExpr) -> Hashable:
        below = tuple(self._memo[id(o)] for o in operands(e))
        match e:
            case TirVar(dtype=dtype):
                return ("var", self._number(e), dtype)
            case DimSymbol(name=name):
                return ("dim", self._number(name))
            case Imm(value=value, dtype=dtype):
                return ("imm", repr(value), dtype)
            case Binary(kind=kind):
                return (kind, below)
            case Not():
                return ("not", below)
            case Cast(dtype=dtype):
                return ("cast", dtype, below)
            case Select(lazy=lazy):
                return ("select", lazy, below)
            case Intrinsic(name=name):
                return (name, below)
            case BufferLoad(buffer=buffer):
                return ("load", self._number(buffer), below)

    def _exprs(self, exprs: Iterable[TirExpr]) -> Hashable:
        return tuple(self._expr(e) for e in exprs)

    def _stmt(self, s: Stmt | None) -> Hashable:
        match s:
            case None:
                return None
            case Store(buffer=buffer, indices=indices, value=value):
                return ("store", self._number(buffer), self._exprs((*indices, value)))
            case For(var=var, extent=extent, kind=kind, body=body):
                return (kind, self._expr(extent), self._number(var), self._stmt(body))
            case IfThenElse(condition=condition, then_case=then_case, else_case=else_case):
                cases = self._stmt(then_case), self._stmt(else_case)
                return ("if", self._expr(condition), cases)
            case Seq(body=body):
                return ("seq", tuple(self._stmt(b) for b in body))
            case TirBlock():
                axes = tuple(
                    (a.kind, self._exprs((a.extent, a.binding)), self._number(a.var))
                    for a in s.axes
                )
                allocs = tuple(self._declared(b) for b in s.allocs)
                return ("block", s.name, axes, allocs, self._stmt(s.init), self._stmt(s.body))
            case TensorIntrinsic():
                passed = tuple((self._number(b), self._exprs(at)) for b, at in s.buffers)
                return ("intrinsic", s.name, passed, self._exprs(s.scalars))
