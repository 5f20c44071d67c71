"""Walks over and rewrites of the loop language.

Expressions are trees that may share nodes.  Every walk visits a shared node once and keeps it
shared, so that its cost is that of the graph and not of the tree.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

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
    binary,
)
from relax_egraph.tir.stmt import (
    For,
    IfThenElse,
    Seq,
    Stmt,
    Store,
    TensorIntrinsic,
    TirBlock,
)

_NO_VARIABLES: Mapping[TirVar, TirExpr] = {}
_NO_BUFFERS: Mapping[Buffer, Buffer] = {}


def operands(expr: TirExpr) -> tuple[TirExpr, ...]:
    """The expressions directly below `expr`, left to right."""
    match expr:
        case Binary(a=a, b=b):
            return (a, b)
        case Not(a=a):
            return (a,)
        case Cast(value=value):
            return (value,)
        case Select(condition=condition, a=a, b=b):
            return (condition, a, b)
        case Intrinsic(args=args):
            return args
        case BufferLoad(indices=indices):
            return indices
        case TirVar() | DimSymbol() | Imm():
            return ()


def with_operands(expr: TirExpr, new: Sequence[TirExpr]) -> TirExpr:
    """`expr` over other operands; trivial index arithmetic is folded."""
    match expr:
        case Binary(kind=kind):
            return binary(kind, new[0], new[1])
        case Not():
            return Not(new[0])
        case Cast(dtype=dtype):
            return Cast(dtype, new[0])
        case Select(lazy=lazy):
            return Select(new[0], new[1], new[2], lazy)
        case Intrinsic(name=name):
            return Intrinsic(name, tuple(new))
        case BufferLoad(buffer=buffer):
            return BufferLoad(buffer, tuple(new))
        case TirVar() | DimSymbol() | Imm():
            return expr


def postorder(expr: TirExpr) -> Iterator[TirExpr]:
    """Every node of `expr`, operands before operators, a shared one once."""
    seen: set[int] = set()
    todo = [(expr, False)]
    while todo:
        e, ready = todo.pop()
        if ready:
            yield e
        elif id(e) not in seen:
            seen.add(id(e))
            todo.append((e, True))
            todo.extend((o, False) for o in reversed(operands(e)))


def rewrite(
    expr: TirExpr,
    change: Callable[[TirExpr], TirExpr],
    done: dict[int, tuple[TirExpr, TirExpr]] | None = None,
) -> TirExpr:
    """`expr` with `change` applied to every node, operands first.

    `done` is the memo of several calls with one `change`; they share nodes.
    """
    memo = {} if done is None else done
    for e in postorder(expr):
        if id(e) not in memo:
            old = operands(e)
            new = tuple(memo[id(o)][1] for o in old)
            same = all(a is b for a, b in zip(old, new, strict=True))
            # The node is kept alive too: an id is unique only among living objects.
            memo[id(e)] = (e, change(e if same else with_operands(e, new)))
    return memo[id(expr)][1]


def substitute(
    expr: TirExpr,
    variables: Mapping[TirVar, TirExpr] = _NO_VARIABLES,
    buffers: Mapping[Buffer, Buffer] = _NO_BUFFERS,
) -> TirExpr:
    """`expr` with variables and buffers replaced, all at once."""
    return rewrite(expr, _substitution(variables, buffers))


def _substitution(
    variables: Mapping[TirVar, TirExpr], buffers: Mapping[Buffer, Buffer]
) -> Callable[[TirExpr], TirExpr]:
    def change(e: TirExpr) -> TirExpr:
        if isinstance(e, TirVar):
            return variables.get(e, e)
        if isinstance(e, BufferLoad) and e.buffer in buffers:
            return BufferLoad(buffers[e.buffer], e.indices)
        return e

    return change


def rewrite_stmt(
    stmt: Stmt,
    change: Callable[[TirExpr], TirExpr],
    buffers: Mapping[Buffer, Buffer] = _NO_BUFFERS,
) -> Stmt:
    """`stmt` with `change` applied to each whole expression, and written `buffers` replaced."""

    def exprs(several: tuple[TirExpr, ...]) -> tuple[TirExpr, ...]:
        return tuple(change(e) for e in several)

    def walk(s: Stmt) -> Stmt:
        match s:
            case Store(buffer=buffer, indices=indices, value=value):
                return Store(buffers.get(buffer, buffer), exprs(indices), change(value))
            case For():
                return replace(s, extent=change(s.extent), body=walk(s.body))
            case IfThenElse():
                other = s.else_case and walk(s.else_case)
                return IfThenElse(change(s.condition), walk(s.then_case), other)
            case Seq(body=body):
                return Seq(tuple(walk(b) for b in body))
            case TirBlock():
                return replace(
                    s,
                    axes=tuple(
                        replace(a, extent=change(a.extent), binding=change(a.binding))
                        for a in s.axes
                    ),
                    body=walk(s.body),
                    init=s.init and walk(s.init),
                    allocs=tuple(buffers.get(b, b) for b in s.allocs),
                )
            case TensorIntrinsic():
                passed = tuple((buffers.get(b, b), exprs(at)) for b, at in s.buffers)
                return TensorIntrinsic(s.name, passed, exprs(s.scalars))

    return walk(stmt)


def substitute_stmt(
    stmt: Stmt,
    variables: Mapping[TirVar, TirExpr] = _NO_VARIABLES,
    buffers: Mapping[Buffer, Buffer] = _NO_BUFFERS,
) -> Stmt:
    """`stmt` with variables and buffers replaced, all at once, where they are used.

    The variables that loops and axes of `stmt` define keep their objects.
    """
    change = _substitution(variables, buffers)
    return rewrite_stmt(stmt, lambda e: rewrite(e, change), buffers)


def nodes(expr: TirExpr) -> Iterator[TirExpr]:
    """Every node of `expr`, operators before operands, a shared one once."""
    seen: set[int] = set()
    todo = [expr]
    while todo:
        e = todo.pop()
        if id(e) not in seen:
            seen.add(id(e))
            yield e
            todo.extend(reversed(operands(e)))


def statements(stmt: Stmt) -> Iterator[Stmt]:
    """`stmt` and every statement in it, in textual order; an `init` before its body."""
    yield stmt
    match stmt:
        case For(body=body):
            yield from statements(body)
        case IfThenElse(then_case=then_case, else_case=else_case):
            yield from statements(then_case)
            if else_case is not None:
                yield from statements(else_case)
        case Seq(body=body):
            for inner in body:
                yield from statements(inner)
        case TirBlock(body=body, init=init):
            if init is not None:
                yield from statements(init)
            yield from statements(body)
        case Store() | TensorIntrinsic():
            pass


def expressions(stmt: Stmt) -> Iterator[TirExpr]:
    """Every whole expression of `stmt`: extents, bindings, conditions, indices, values."""
    for s in statements(stmt):
        match s:
            case Store(indices=indices, value=value):
                yield from (*indices, value)
            case For(extent=extent):
                yield extent
            case IfThenElse(condition=condition):
                yield condition
            case TirBlock(axes=axes):
                for axis in axes:
                    yield from (axis.extent, axis.binding)
            case TensorIntrinsic(buffers=buffers, scalars=scalars):
                for _, indices in buffers:
                    yield from indices
                yield from scalars
            case Seq():
                pass


def loads(root: TirExpr | Stmt) -> tuple[BufferLoad, ...]:
    """Every read of a buffer in `root`, a shared node once."""
    whole = expressions(root) if isinstance(root, Stmt) else (root,)
    return tuple(n for e in whole for n in nodes(e) if isinstance(n, BufferLoad))


def stores(stmt: Stmt) -> tuple[Store, ...]:
    """Every write of a buffer in `stmt`, those of a block's `init` before those of its body."""
    return tuple(s for s in statements(stmt) if isinstance(s, Store))


def variables(expr: TirExpr) -> frozenset[TirVar]:
    """The variables in `expr`."""
    return frozenset(n for n in nodes(expr) if isinstance(n, TirVar))
