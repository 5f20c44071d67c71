"""Merges the loop functions that a function calls into one loop function."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    BindingBlock,
    Call,
    Function,
    GlobalVar,
    SeqExpr,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import (
    Shape,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relax_egraph.ir.walk import bindings_of, free_vars
from relax_egraph.lower.fused_body import FusedBody, Value
from relax_egraph.tir import te
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.merge import Merger
from relax_egraph.tir.stmt import PrimFunc

LowerFunction: TypeAlias = Callable[[str, Function], PrimFunc]
"""Lowers a primitive function of operators to a loop function; the name is for errors."""


def calls_loops(function: Function) -> bool:
    """Whether the body calls a loop function."""
    values = (b.value for b in bindings_of(function.body))
    return any(isinstance(v, Call) and _is_call_tir(v) for v in values)


def _is_call_tir(call: Call) -> bool:
    return isinstance(call.op, Op) and call.op.name == "call_tir"


def merged_prim_func(
    module: IRModule, name: str, function: Function, lower: LowerFunction
) -> PrimFunc:
    """The loop functions that `function` calls, in sequence, as one loop function.

    Intermediate results are allocated within it.  `lower` lowers an operator between the calls;
    errors refer to the function by `name`.
    """
    merging = _Merging(name, module=module, lower=lower)
    inputs, results = merging.evaluate(function)
    attrs = {key: value for key, value in function.attrs.items() if key != "primitive"}
    return merging.merger.function(inputs, merging.computed(results), attrs)


@dataclass(slots=True)
class _Merging(FusedBody):
    """Evaluates the body to buffers; the `merger` records the calls."""

    module: IRModule = field(kw_only=True)
    lower: LowerFunction = field(kw_only=True)
    merger: Merger = field(default_factory=Merger)

    def tensor(self, name: str, shape: Shape, dtype: str) -> Buffer:
        return self.merger.param(name, shape, dtype)

    def constant(self, filled: te.Tensor) -> Buffer:
        return self.merger.call(te.create_prim_func(filled), (), {})[0]

    def call(self, call: Call) -> Value:
        if _is_call_tir(call):
            return self.call_tir(call)
        if isinstance(call.op, Op) and not call.op.intrinsic:
            return self.operator(call)
        raise NotLowerable(f"{self.name}: a call of {call.op} cannot be fused")

    def call_tir(self, call: Call) -> Value:
        callee, operands, *rest = call.args
        assert isinstance(callee, GlobalVar)
        function = self.module[callee.name]
        assert isinstance(function, PrimFunc)
        value = self.value(operands)
        inputs = _buffers(value if isinstance(value, list) else [value])
        scalars = self.value(rest[0]) if rest else ()
        assert isinstance(scalars, tuple)
        scalar_values = dict(zip(function.scalars, scalars, strict=True))
        extents = [*(d for b in inputs for d in b.shape), *_extents(call.struct_info)]
        param_dims = [d for b in function.params for d in b.shape]
        symbols = symbol_values(callee.name, zip(param_dims, extents, strict=True), scalar_values)
        return _single(self.merger.call(function, inputs, symbols))

    def operator(self, call: Call) -> Value:
        used = free_vars(call)
        result = Var("result", call.struct_info)
        body = SeqExpr((BindingBlock((VarBinding(result, call),)),), result)
        function = self.lower(self.name, Function(used, body, call.struct_info))
        inputs = [b for b in map(self.values.__getitem__, used) if isinstance(b, Buffer)]
        return _single(self.merger.call(function, inputs, _same(function)))

    def computed(self, results: Sequence[Buffer]) -> list[Buffer]:
        """`results`, each computed and distinct: inputs and duplicates become copies."""
        outputs: list[Buffer] = []
        for result in results:
            is_new = result in self.merger.computed and result not in outputs
            outputs.append(result if is_new else self.copy(result))
        return outputs

    def copy(self, buffer: Buffer) -> Buffer:
        source = te.placeholder(buffer.shape, buffer.dtype, buffer.name)
        copied = te.create_prim_func(source, te.compute(source.shape, source.at, "copy"))
        return self.merger.call(copied, [buffer], _same(copied))[0]


def _buffers(values: Sequence[Value]) -> list[Buffer]:
    buffers = [v for v in values if isinstance(v, Buffer)]
    assert len(buffers) == len(values)
    return buffers


def _single(results: tuple[Buffer, ...]) -> Value:
    return results[0] if len(results) == 1 else list(results)


def _same(function: PrimFunc) -> dict[str, Dim]:
    """The identity map of the symbols of `function`."""
    return {s: dims.symbol(s) for s in function.symbols}


def _extents(info: StructInfo) -> Iterator[Dim]:
    """The extents of the results of ``R.call_tir``, in order; all are known."""
    if isinstance(info, TupleStructInfo):
        for part in info.fields:
            yield from _extents(part)
    else:
        assert isinstance(info, TensorStructInfo)
        assert info.dims is not None
        yield from info.dims


def symbol_values(
    name: str, extents: Iterable[tuple[Dim, Dim]], known: Mapping[str, Dim]
) -> dict[str, Dim]:
    """The values of the symbols of the function `name`; `extents` pairs parameters with operands.

    `known` are values from elsewhere.  A symbol that is no parameter dimension by itself keeps its
    name.  Raises `NotLowerable` for extents that are not proven to be equal.
    """
    values: dict[str, Dim] = dict(known)
    pairs = list(extents)
    for expected, actual in pairs:
        if not isinstance(expected, int) and expected.is_Symbol:
            values.setdefault(dims.text(expected), actual)
    for expected, actual in pairs:
        if not dims.equal(dims.substitute(expected, values), actual):
            raise NotLowerable(
                f"call of {name}: an operand has extent {dims.text(actual)}, "
                f"not proven to be {dims.text(expected)}"
            )
    return values
