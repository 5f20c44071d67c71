"""What a plan does, for readers and for tests: what is cut how, and what is sent."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from relax_egraph.ir.expr import Call, Function, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import Shape, TensorStructInfo, shape_text
from relax_egraph.shards.local import COLLECTIVES, SHARD


@dataclass(frozen=True, slots=True)
class Sent:
    """A collective, by the name of its operator, and the shape that every device then has."""

    op: str
    shape: Shape

    def __str__(self) -> str:
        return f"R.{self.op} to {shape_text(self.shape)}"


def collectives_of(module: IRModule, function: str) -> tuple[Sent, ...]:
    """The collectives of a plan, in order."""
    return tuple(
        Sent(op, info.dims or ())
        for op, call in _calls(module, function)
        if op in COLLECTIVES and isinstance(info := call.struct_info, TensorStructInfo)
    )


def cuts_of_parameters(module: IRModule, function: str) -> Mapping[str, tuple[int, ...]]:
    """The axes along which parameters are cut, by name, in the order of the program."""
    cuts: dict[str, tuple[int, ...]] = {}
    for op, call in _calls(module, function):
        of, axis = call.args[0] if call.args else None, call.attrs.get("axis")
        if op == SHARD and isinstance(axis, int) and of in _parameters(module, function):
            assert isinstance(of, Var)
            cuts[of.name] = (*cuts.get(of.name, ()), axis)
    return cuts


def _parameters(module: IRModule, function: str) -> tuple[Var, ...]:
    found = module[function]
    assert isinstance(found, Function)
    return found.params


def _calls(module: IRModule, function: str) -> Iterator[tuple[str, Call]]:
    found = module[function]
    assert isinstance(found, Function)
    for block in found.body.blocks:
        for binding in block.bindings:
            call = binding.value
            if isinstance(call, Call) and isinstance(call.op, Op):
                yield call.op.name, call
