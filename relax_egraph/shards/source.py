"""The function that is planned: one dataflow block, what it reads and what it returns."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from relax_egraph.errors import IllFormed, UnknownFunction, nearest
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.called import called_operators
from relax_egraph.ir.expr import (
    Binding,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    SeqExpr,
    Tuple,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.struct_info import TensorStructInfo, TupleStructInfo
from relax_egraph.optimize.prepare import prepare
from relax_egraph.optimize.session import Session
from relax_egraph.passes import fold_constant
from relax_egraph.shards.local import COLLECTIVES, SHARD, TO_PARTS


@dataclass(frozen=True, slots=True)
class Source:
    """A prepared function: its bindings, and its results, one or the fields of a tuple."""

    module: IRModule
    name: str
    function: Function
    bindings: tuple[Binding, ...]
    results: tuple[Var, ...]

    def function_of(self, bindings: tuple[Binding, ...], results: tuple[Var, ...]) -> IRModule:
        """The module with other bindings and results of the function."""
        is_tuple = isinstance(self.function.ret_struct_info, TupleStructInfo)
        body: Expr = Tuple(results) if is_tuple else results[0]
        seq = SeqExpr((DataflowBlock(bindings),), body)
        function = replace(self.function, body=seq, ret_struct_info=body.struct_info)
        return replace(self.module, functions={self.name: function})


def source_of(module: IRModule, name: str, session: Session) -> Source:
    """The function `name` of `module`, simplified as before optimization.

    Raises `UnknownFunction` if there is none, and `IllFormed` if it has effects or branches.
    """
    if name not in dict(module.relax_functions()):
        known = [n for n, _ in module.relax_functions()]
        raise UnknownFunction(f"no function {name!r}; there are {', '.join(known) or 'none'}")
    prepared = prepare(module, session).module
    if not any(op.name in (*TO_PARTS, *COLLECTIVES) for op in called_operators(prepared)):
        prepared = fold_constant(prepared)  # in a plan, parts of constants are to stay parts
    function = prepared[name]
    assert isinstance(function, Function)
    blocks = [b for b in function.body.blocks if b.bindings]
    if len(blocks) != 1 or not isinstance(blocks[0], DataflowBlock):
        raise IllFormed(
            f"function {name!r} is no single dataflow block: a plan for several devices "
            "needs one without effects and branches"
        )
    bindings = blocks[0].bindings
    values = {b.var: b.value for b in bindings}
    body: Expr = function.body.body
    while isinstance(body, Var) and isinstance(values.get(body), Var | Tuple):
        body = values[body]
    fields = body.fields if isinstance(body, Tuple) else (body,)
    results = tuple(f for f in fields if isinstance(f, Var) and _is_tensor(f))
    if len(results) < len(fields):
        raise IllFormed(f"function {name!r}: its results are no tensors that it computes")
    return Source(prepared, name, function, bindings, results)


def cuts_of(source: Source, parts: int) -> Iterator[VarBinding]:
    """Every value of the function in equal parts along each axis that is proven to have such."""
    values = [*source.function.params, *(b.var for b in source.bindings)]
    for value in filter(_is_tensor, values):
        for axis in axes_in_parts(value, parts):
            cut = call(SHARD, value, parts=parts, axis=axis)
            yield VarBinding(DataflowVar("part", cut.struct_info), cut)


def axes_in_parts(value: Var, parts: int) -> tuple[int, ...]:
    """The axes of a tensor that are proven to have equal parts."""
    info = value.struct_info
    known = info.dims if isinstance(info, TensorStructInfo) else None
    return tuple(k for k, d in enumerate(known or ()) if dims.divides(parts, d))


def parameters(source: Source, names: Mapping[str, object] | tuple[str, ...]) -> list[Var]:
    """The parameters of these names; raises ``ValueError`` for a name that none has."""
    known = {p.name: p for p in source.function.params}
    for name in names:
        if name not in known:
            note = nearest(name, known) or f"there are {', '.join(known) or 'none'}"
            raise ValueError(f"no parameter is named {name!r}; {note}")
    return [known[name] for name in names]


def _is_tensor(value: Var) -> bool:
    return isinstance(value.struct_info, TensorStructInfo) and value.struct_info.dims is not None
