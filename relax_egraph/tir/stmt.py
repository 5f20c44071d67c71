"""Statements of the loop language, and its functions."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from relax_egraph.ir.expr import FunctionAttr, FunctionAttrs
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    StructInfo,
    TupleStructInfo,
    symbols_of,
    tensor,
)
from relax_egraph.ir.structural import LABEL, SYMBOL
from relax_egraph.ir.text import Shown
from relax_egraph.tir.expr import HANDLE, Buffer, TirExpr, TirVar

LoopKind: TypeAlias = Literal["serial", "parallel", "vectorized", "unrolled"]


@dataclass(frozen=True, slots=True)
class Store:
    """``buffer[indices] = value``."""

    buffer: Buffer
    indices: tuple[TirExpr, ...]
    value: TirExpr


@dataclass(frozen=True, slots=True)
class For:
    """``for var in T.<kind>(extent): body``; `var` runs from 0."""

    var: TirVar
    extent: TirExpr
    kind: LoopKind
    body: "Stmt"


@dataclass(frozen=True, slots=True)
class IfThenElse:
    """``if condition: then_case else: else_case``."""

    condition: TirExpr
    then_case: "Stmt"
    else_case: "Stmt | None" = None


@dataclass(frozen=True, slots=True)
class Seq:
    """Statements in order."""

    body: tuple["Stmt", ...]


@dataclass(frozen=True, slots=True)
class BlockAxis:
    """An axis of a block: ``var = T.axis.<kind>(extent, binding)``."""

    var: TirVar
    extent: TirExpr
    kind: Literal["spatial", "reduce"]
    binding: TirExpr


@dataclass(frozen=True, slots=True)
class TirBlock:
    """A computation over named axes, so that schedules can transform the loops around it.

    `init` runs where all reduce axes are 0, before `body`.
    """

    name: str = field(metadata=LABEL)
    axes: tuple[BlockAxis, ...]
    body: "Stmt"
    init: "Stmt | None" = None
    allocs: tuple[Buffer, ...] = ()


@dataclass(frozen=True, slots=True)
class TensorIntrinsic:
    """A call of a hand-written micro-kernel by name: ``T.call_intrin("gemm_tile", …)``.

    `buffers` are passed as the address of an element; `scalars` as ``int64``.
    """

    name: str
    buffers: tuple[tuple[Buffer, tuple[TirExpr, ...]], ...]
    scalars: tuple[TirExpr, ...]


Stmt: TypeAlias = Store | For | IfThenElse | Seq | TirBlock | TensorIntrinsic


@dataclass(frozen=True, eq=False, repr=False)
class PrimFunc(Shown):
    """A function of the loop level, in destination-passing style.

    Parameters are buffers, the last `num_outputs` of them written, then ``int64`` scalars for
    the dimension symbols that no buffer's shape binds directly.  `allocs` are the buffers of
    the root block.
    """  # no slots: cached properties need the dictionary

    params: tuple[Buffer, ...]
    body: Stmt
    num_outputs: int = 1
    scalars: tuple[str, ...] = field(default=(), metadata=SYMBOL)
    allocs: tuple[Buffer, ...] = ()
    attrs: FunctionAttrs = field(default_factory=dict[str, FunctionAttr])

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """The buffers that are read."""
        return self.params[: len(self.params) - self.num_outputs]

    @property
    def outputs(self) -> tuple[Buffer, ...]:
        """The buffers that are written."""
        return self.params[len(self.params) - self.num_outputs :]

    @property
    def struct_info(self) -> StructInfo:
        """Operands and result as ``R.call_tir`` sees them."""
        outs = tuple(_info(b) for b in self.outputs)
        params: tuple[StructInfo, ...] = tuple(_info(b) for b in self.inputs)
        ret = outs[0] if len(outs) == 1 else TupleStructInfo(outs)
        scalars = tuple(PrimStructInfo("int64") for _ in self.scalars)
        return FuncStructInfo((*params, *scalars), ret)

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The dimension symbols of the parameters, in order of first appearance, sorted within one.

        The compiled kernel takes them as trailing ``int64`` arguments, after the buffers.
        """
        symbols: dict[str, None] = dict.fromkeys(self.scalars)
        for buffer in self.params:
            for dim in buffer.shape:
                symbols.update(dict.fromkeys(sorted(symbols_of(PrimStructInfo("int64", dim)))))
        return tuple(symbols)


def _info(buffer: Buffer) -> StructInfo:
    if buffer.dtype == HANDLE:
        return ObjectStructInfo()
    return tensor(buffer.shape, buffer.dtype)


def seq(*stmts: Stmt) -> Stmt:
    """The statements in order, without nesting of sequences."""
    flat: list[Stmt] = []
    for s in stmts:
        flat.extend(s.body if isinstance(s, Seq) else (s,))
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))
