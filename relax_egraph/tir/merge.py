"""Merges several loop functions, which run in sequence, into one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import FunctionAttrs
from relax_egraph.tir.analysis import (
    private_buffers,
    symbols_of_buffers,
    symbols_of_stmt,
    unbound_symbols,
)
from relax_egraph.tir.expr import Buffer, BufferLoad, DimSymbol, TirExpr, TirVar, from_dim
from relax_egraph.tir.rewrite import rewrite, rewrite_stmt, statements
from relax_egraph.tir.stmt import For, IfThenElse, PrimFunc, Seq, Stmt, TirBlock, seq


@dataclass(slots=True)
class Merger:
    """Calls of loop functions, in order; later calls read the buffers of earlier results."""

    names: set[str] = field(default_factory=set[str])
    blocks: set[str] = field(default_factory=set[str])
    body: list[Stmt] = field(default_factory=list[Stmt])
    computed: list[Buffer] = field(default_factory=list[Buffer])

    def param(self, name: str, shape: tuple[Dim, ...], dtype: str) -> Buffer:
        """A new buffer that is a parameter."""
        return Buffer(_unused(name, self.names), shape, dtype)

    def call(
        self, function: PrimFunc, inputs: Sequence[Buffer], symbols: Mapping[str, Dim]
    ) -> tuple[Buffer, ...]:
        """Add a call of `function` on `inputs`; returns the new buffers of its results.

        `symbols` are the values of the dimension symbols of `function`.
        """
        buffers = dict(zip(function.inputs, inputs, strict=True))
        for b in (*function.outputs, *function.allocs, *private_buffers(function.body)):
            shape = tuple(dims.substitute(d, symbols) for d in b.shape)
            name = _unused(b.name, self.names)
            buffers[b] = replace(b, name=name, shape=shape)
        self.body.append(self._copied(function.body, buffers, symbols))
        self.computed += [buffers[b] for b in (*function.outputs, *function.allocs)]
        return tuple(buffers[b] for b in function.outputs)

    def function(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], attrs: FunctionAttrs
    ) -> PrimFunc:
        """The calls as one function; intermediate buffers are allocated."""
        params = (*inputs, *outputs)
        allocs = tuple(b for b in self.computed if b not in outputs)
        body = seq(*self.body)
        used = symbols_of_stmt(body) | symbols_of_buffers(allocs)
        scalars = unbound_symbols(params, used)
        return PrimFunc(params, body, len(outputs), scalars, allocs, dict(attrs))

    def _copied(
        self, body: Stmt, buffers: Mapping[Buffer, Buffer], symbols: Mapping[str, Dim]
    ) -> Stmt:
        """A copy of `body` over other buffers and symbols, with new variables and block names."""
        variables: dict[TirVar, TirVar] = {}
        for s in statements(body):
            defined = [s.var] if isinstance(s, For) else []
            defined += [a.var for a in s.axes] if isinstance(s, TirBlock) else []
            variables |= {v: TirVar(v.name, v.dtype) for v in defined}

        def change(e: TirExpr) -> TirExpr:
            match e:
                case TirVar():
                    return variables.get(e, e)
                case DimSymbol(name=name) if name in symbols:
                    return from_dim(symbols[name])
                case BufferLoad(buffer=buffer, indices=indices) if buffer in buffers:
                    return BufferLoad(buffers[buffer], indices)
                case _:
                    return e

        changed = rewrite_stmt(body, lambda e: rewrite(e, change), buffers)
        return self._redefined(changed, variables)

    def _redefined(self, stmt: Stmt, variables: Mapping[TirVar, TirVar]) -> Stmt:
        """`stmt` with new variables; blocks get unique names."""

        def walk(s: Stmt) -> Stmt:
            match s:
                case For():
                    return replace(s, var=variables[s.var], body=walk(s.body))
                case IfThenElse():
                    other = s.else_case and walk(s.else_case)
                    return replace(s, then_case=walk(s.then_case), else_case=other)
                case Seq(body=body):
                    return Seq(tuple(walk(b) for b in body))
                case TirBlock():
                    axes = tuple(replace(a, var=variables[a.var]) for a in s.axes)
                    name, init = _unused(s.name, self.blocks), s.init and walk(s.init)
                    return replace(s, name=name, axes=axes, body=walk(s.body), init=init)
                case _:
                    return s

        return walk(stmt)


def _unused(name: str, names: set[str]) -> str:
    """`name`, or the first of ``name_1``, ``name_2``... not in `names`; adds it to `names`."""
    unique, number = name, 0
    while unique in names:
        number += 1
        unique = f"{name}_{number}"
    names.add(unique)
    return unique
