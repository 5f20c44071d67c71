"""The program of one device: a plan without axes of parts, and what each device is given.

One program is run by all devices.  It calls collectives as packed functions, ``dist.all_reduce`` of
a tensor and ``dist.all_gather`` of a tensor and an axis, which meet those of the other devices; and
``dist.shard`` of a tensor and an axis, which returns the device's part of what every device has.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph.base.parameters import instance, takes
from relax_egraph.errors import IllFormed
from relax_egraph.ir.block_builder import BlockBuilder, call_packed
from relax_egraph.ir.expr import (
    Call,
    Constant,
    DataflowBlock,
    Expr,
    Function,
    PrimValue,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.names import unused
from relax_egraph.ir.op import Op, complete_attrs
from relax_egraph.ir.struct_info import TensorStructInfo
from relax_egraph.shards.local import (
    COLLECTIVES,
    REPLICATE,
    SHARD,
    TO_SHAPE,
    on_a_part,
    part_of,
)
from relax_egraph.shards.plan import ShardedPlan

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Cut:
    """A parameter of a device's program: a part, along `axis`, of a constant or a parameter."""

    name: str
    of: Constant | Var
    axis: int


@dataclass(frozen=True, slots=True)
class DeviceProgram:
    """The program of each of `parts` devices, the function `function` of `module`.

    Its parameters are those of the source that devices have whole, in order, then `cuts`.
    `results` has, for each result, the axis along which devices have parts, or ``None``.
    """

    module: IRModule
    function: str
    parts: int
    whole: tuple[str, ...]
    cuts: tuple[Cut, ...]
    results: tuple[int | None, ...]

    def arguments(self, device: int, values: Mapping[str, Array]) -> list[Array]:
        """What `device` is given, of `values` by the names of the source's parameters."""
        given = [values[name] for name in self.whole]
        for cut in self.cuts:
            value = cut.of.data if isinstance(cut.of, Constant) else values[cut.of.name]
            given.append(np.ascontiguousarray(np.split(value, self.parts, cut.axis)[device]))
        return given

    def joined(self, results: Sequence[Any]) -> tuple[Array, ...]:
        """The results of the source, of those of each device, in order."""
        each = [r if isinstance(r, tuple | list) else (r,) for r in results]
        return tuple(
            each[0][k] if axis is None else np.concatenate([r[k] for r in each], axis)
            for k, axis in enumerate(self.results)
        )


@takes(plan=instance("a ShardedPlan", ShardedPlan))
def device_program(plan: ShardedPlan) -> DeviceProgram:
    """The program of each device in `plan`."""
    function = plan.module[plan.function]
    assert isinstance(function, Function)
    (block,) = function.body.blocks
    assert isinstance(block, DataflowBlock)
    writer = _Writer(plan, function)
    bb, body = BlockBuilder(), function.body.body
    cuts = [*writer.cuts_in(block)]
    whole = [p for p in function.params if p not in writer.only_cut(block, body)]
    with bb.function(plan.function, [*whole, *(var for _, var in cuts)]):
        with bb.dataflow():
            for binding in block.bindings:
                assert isinstance(binding, VarBinding)
                writer.write(bb, binding)
            fields = body.fields if isinstance(body, Tuple) else (body,)
            outs = tuple(bb.emit_output(writer.value(f)) for f in fields)
        bb.emit_func_output(Tuple(outs) if isinstance(body, Tuple) else outs[0])
    axes = tuple(plan.in_parts.get(k) for k in range(len(fields)))
    names = tuple(p.name for p in whole)
    module = replace(plan.module, functions=bb.get().functions)
    return DeviceProgram(
        module, plan.function, plan.parts, names, tuple(cut for cut, _ in cuts), axes
    )


class _Writer:
    """Writes bindings of a plan as those of one device."""

    def __init__(self, plan: ShardedPlan, function: Function) -> None:
        self._plan = plan
        cut = {*plan.weights, *(name for name, axis in plan.caches.items() if axis is not None)}
        self._kept = frozenset(p for p in function.params if p.name in cut)
        self._taken = {p.name for p in function.params}
        self._local: dict[Var, Expr] = {}
        self._cuts: dict[tuple[int, int], tuple[Cut, Var]] = {}

    def cuts_in(self, block: DataflowBlock) -> Iterator[tuple[Cut, Var]]:
        """The parts that devices are given, each once, with the parameters for them."""
        for binding in block.bindings:
            if (key := self._cut(binding.value)) is None or key in self._cuts:
                continue
            assert isinstance(binding.value, Call)
            (of,) = binding.value.args
            assert isinstance(of, Constant | Var)
            name = of.name if isinstance(of, Var) else "weight"
            var = Var(unused(f"{name}_part", self._taken), part_of(binding.var.struct_info))
            self._cuts[key] = Cut(var.name, of, key[1]), var
            yield self._cuts[key]

    def only_cut(self, block: DataflowBlock, body: Expr) -> frozenset[Var]:
        """The parameters that are used in parts only."""
        elsewhere = {
            arg
            for binding in block.bindings
            if self._cut(binding.value) is None
            for arg in _reads(binding.value)
        }
        return self._kept - elsewhere - {*_reads(body)}

    def write(self, bb: BlockBuilder, binding: VarBinding) -> None:
        """Emit what a device does for `binding`."""
        value, var = binding.value, binding.var
        if isinstance(value, Call) and isinstance(value.op, Op):
            name = value.op.name
            if (key := self._cut(value)) is not None:
                self._local[var] = self._cuts[key][1]
            elif name == REPLICATE:
                self._local[var] = self.value(value.args[0])
            elif name in (SHARD, *COLLECTIVES):
                info = part_of(var.struct_info) if name == SHARD else var.struct_info
                self._local[var] = bb.emit(self._called(name, value, info), var.name)
            elif self._is_cut(var):
                self._local[var] = bb.emit(self._on_a_part(value, var), var.name)
            else:
                self._local[var] = bb.emit(self.value(value), var.name)
        else:
            self._local[var] = bb.emit(self.value(value), var.name)

    def value(self, expr: Expr) -> Any:
        """`expr` with the values of the device."""
        match expr:
            case Var():
                return self._local.get(expr, expr)
            case Tuple(fields=fields):
                return Tuple(tuple(map(self.value, fields)))
            case TupleGetItem(tuple_value=inner, index=index):
                return TupleGetItem(self.value(inner), index)
            case Call(args=args):
                return replace(expr, args=tuple(map(self.value, args)))
            case _:
                return expr

    def _cut(self, value: Expr) -> tuple[int, int] | None:
        """What is cut before the program runs, by identity, and the axis."""
        if not isinstance(value, Call) or not isinstance(value.op, Op) or value.op.name != SHARD:
            return None
        of, axis = value.args[0], value.attrs["axis"]
        assert isinstance(axis, int)
        return (id(of), axis) if isinstance(of, Constant) or of in self._kept else None

    def _is_cut(self, var: Var) -> bool:
        return var.name in self._plan.cut_values

    def _called(self, name: str, value: Call, info: Any) -> Call:
        axes = [PrimValue(int(a)) for k, a in value.attrs.items() if k == "axis"]  # pyright: ignore
        return call_packed(name, [self.value(value.args[0]), *axes], [info], pure=True)

    def _on_a_part(self, value: Call, var: Var) -> Call:
        op = value.op
        assert isinstance(op, Op)
        assert isinstance(var.struct_info, TensorStructInfo)
        infos = [a.struct_info for a in value.args]
        in_parts = [any(map(self._is_cut, _reads(a))) for a in value.args]
        attrs = complete_attrs(op, value.attrs)
        local = on_a_part(op, infos, in_parts, attrs, var.struct_info)
        if local is None:
            raise IllFormed(f"{var.name}: {op} is not known to do the same to each part")
        args = tuple(self._of_a_part(op, arg) for arg in value.args)
        return Call(op, args, local.attrs, struct_info=local.result)

    def _of_a_part(self, op: Op, arg: Expr) -> Any:
        """An operand on one device; the shape of a result is that of a part."""
        if isinstance(arg, ShapeExpr) and op.name in TO_SHAPE:
            return ShapeExpr(arg.values[1:])
        return self.value(arg)


def _reads(value: Expr) -> Iterator[Var]:
    """The variables that `value` reads."""
    match value:
        case Var():
            yield value
        case Tuple(fields=several) | Call(args=several):
            for each in several:
                yield from _reads(each)
        case TupleGetItem(tuple_value=inner):
            yield from _reads(inner)
        case _:
            return
