"""Converts loops to two mutually tail-recursive functions: the test, and one turn.

    loop(turn, last, go_on, state…, around…) = step(…) if turn < last and go_on else state
    step(turn, last, go_on, state…, around…) = loop(turn + 1, last, go_on', state'…, around…)

`state` are the loop-carried values, and the scan outputs so far, as sequences.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.functions import call_function, distinct
from relax_egraph.frontends.building.loops import TailLoop, define_loop
from relax_egraph.frontends.building.names import identifier
from relax_egraph.frontends.onnx.frame import Frame
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.subgraphs import Surroundings, surroundings
from relax_egraph.frontends.onnx.values import Scope
from relax_egraph.ir import dims
from relax_egraph.ir.agreement import implies
from relax_egraph.ir.block_builder import BlockBuilder, call, call_packed
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, PrimValue, ShapeExpr, Tuple, TupleGetItem, Var, const
from relax_egraph.ir.struct_info import (
    ObjectStructInfo,
    StructInfo,
    TensorStructInfo,
    tensor,
)

_COUNT = tensor((), "int64")
_CONDITION = tensor((), "bool")
_MOST_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Turn:
    """The inputs of the body in one turn: number, condition, state, and values from outside."""

    number: Expr
    go_on: Expr
    state: tuple[Expr, ...]
    passed: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop, whose `body` emits a turn and returns its results.

    The results are the condition to continue, if the body `decides`, then the new `state`, then as
    many values as there are `scan_outputs`.  `passed` are values that it reads, `graph` a subgraph
    that it converts and that reads names of the outer graph.
    """

    name: str
    body: Callable[[Frame, Turn], Sequence[Expr]]
    state: tuple[Expr, ...]
    scan_outputs: int
    decides: bool = False
    passed: tuple[Expr, ...] = ()
    graph: onnx.GraphProto | None = None


@dataclass(frozen=True, slots=True)
class Looped:
    """The results of a loop: the final state, and scan outputs as sequences with their kinds."""

    state: tuple[Expr, ...]
    scan_outputs: tuple[Expr, ...]
    kinds: tuple[StructInfo, ...]


def run_loop(loop: Loop, last: Expr, go_on: Expr, frame: Frame) -> Looped:
    """Emit the functions of `loop` and its call, for turns before `last` while `go_on` holds."""
    infos, own = [e.struct_info for e in loop.state], set[Dim]()
    for _ in range(_MOST_ROUNDS):
        weaker, kinds = _after_a_turn(loop, infos, frame, own)
        if weaker == infos:
            break
        infos = weaker
    else:
        raise ModelError("the types of its state change from turn to turn without end")
    around = surroundings(loop.graph, frame, infos, loop.passed)
    state = [Var("state", info) for info in infos]
    lists = [Var("scanned", ObjectStructInfo()) for _ in range(loop.scan_outputs)]
    heads = [Var("turn", _COUNT), Var("last", _COUNT), Var("go_on", _CONDITION)]
    params = distinct([*heads, *state, *lists, *around.params()])
    model = frame.model
    loop_name, step_name = (model.function_name(identifier(loop.name + s)) for s in ("", "_step"))
    carried = len(state) + len(lists)
    looping = define_loop(
        frame.scope.bb,
        TailLoop(
            (loop_name, step_name),
            params,
            slice(3, 3 + carried),
            lambda: _test(params, frame),
            lambda: _turn(loop, params, around, frame),
            frozenset(own),
        ),
    )
    empty = tuple(Tuple(()) for _ in lists)
    whole = call_function(
        looping, (const(0, "int64"), last, go_on, *loop.state, *empty, *around.exprs)
    )
    results = frame.scope.bb.emit(whole)
    fields = tuple(TupleGetItem(results, k) for k in range(carried))
    return Looped(fields[: len(state)], fields[len(state) :], tuple(kinds))


def _turn(
    loop: Loop, params: Sequence[Var], around: Surroundings, frame: Frame
) -> tuple[Expr, ...]:
    """The operands of the loop from the next turn on."""
    bb = frame.scope.bb
    count, scans = len(loop.state), loop.scan_outputs
    turn, last, go_on, *rest = params
    state, lists, passed = rest[:count], rest[count : count + scans], rest[count + scans :]
    inner = around.inside(frame, passed)
    extra = tuple(passed[len(around.names) :][: len(loop.passed)])
    outputs = loop.body(inner, Turn(turn, go_on, tuple(state), extra))
    following = outputs[0] if loop.decides else go_on
    following = _scalar(bb, following)
    new_state = outputs[loop.decides :][:count]
    new = outputs[loop.decides + count :]
    longer = [_appended(bb, values, item) for values, item in zip(lists, new, strict=True)]
    next_turn = bb.emit(call("add", turn, const(1, "int64")))
    return (next_turn, last, following, *new_state, *longer, *passed)


def _scalar(bb: BlockBuilder, condition: Expr) -> Expr:
    info = condition.struct_info
    if isinstance(info, TensorStructInfo) and info.ndim == 1:
        return bb.emit(call("squeeze", condition, axis=0))
    return condition


def _appended(bb: BlockBuilder, sequence: Expr, item: Expr) -> Expr:
    return bb.emit(
        call_packed(
            "vm.builtin.sequence_append", (sequence, item), (ObjectStructInfo(),), pure=True
        )
    )


def _test(params: Sequence[Var], frame: Frame) -> Expr:
    """Whether there is a further turn."""
    bb = frame.scope.bb
    turn, last, go_on, *_ = params
    before = bb.emit(call("less", turn, last))
    return bb.emit(call("logical_and", before, go_on))


def _after_a_turn(
    loop: Loop, infos: Sequence[StructInfo], frame: Frame, own: set[Dim]
) -> tuple[list[StructInfo], list[StructInfo]]:
    """The common struct info of the state before and after a turn, and that of scan outputs.

    `own` are the symbols of extents that change from turn to turn.  The turn is converted in a
    temporary module.
    """
    bb = BlockBuilder()
    values = dict(frame.scope.values)
    scratch = Frame(Scope(bb, values), frame.model, frame.opsets, frame.attributes, frame.depth + 1)
    state = tuple(Var(f"state{k}", info) for k, info in enumerate(infos))
    passed = tuple(Var(f"passed{k}", e.struct_info) for k, e in enumerate(loop.passed))
    turn, go_on = Var("turn", _COUNT), Var("go_on", _CONDITION)
    with bb.function("scratch", (turn, go_on, *state, *passed)):
        outputs = loop.body(scratch, Turn(turn, go_on, state, passed))
        bb.emit_func_output(Tuple(()))
    after = [o.struct_info for o in outputs[loop.decides :][: len(infos)]]
    kinds = [o.struct_info for o in outputs[loop.decides + len(infos) :]]
    pairs = zip(infos, after, strict=True)
    return [_weaker(a, b, frame, own) for a, b in pairs], kinds


def _weaker(before: StructInfo, after: StructInfo, frame: Frame, own: set[Dim]) -> StructInfo:
    """The common struct info of both; an extent that changes becomes a new symbol."""
    if implies(after, before):
        return before
    if not isinstance(before, TensorStructInfo) or not isinstance(after, TensorStructInfo):
        return ObjectStructInfo()
    if before.dtype != after.dtype:
        raise ModelError(f"its body returns {after} for a state of {before}")
    if before.ndim != after.ndim or before.dims is None:
        return tensor(None, before.dtype)
    extents: list[Dim] = []
    for axis, (was, becomes) in enumerate(
        zip(before.dims, after.dims or (None,) * before.ndim, strict=True)
    ):
        kept = was in own or (becomes is not None and dims.equal(was, becomes))
        extents.append(was if kept else frame.model.symbols.computed(f"extent{axis}"))
        own.update(extents[-1:] if not kept else ())
    return tensor(tuple(extents), before.dtype)


def tensor_of(kind: StructInfo) -> TensorStructInfo:
    """`kind`, which must be a tensor of known rank and dtype."""
    if not isinstance(kind, TensorStructInfo) or kind.ndim < 0 or kind.dtype is None:
        raise ModelError(f"a scan output is {kind}, needs a tensor of known rank")
    return kind


def stacked(node: Node, sequence: Expr, kind: StructInfo, axis: int) -> Expr:
    """The tensors of a sequence stacked along a new axis; an empty tensor for none."""
    each = tensor_of(kind)
    empty = [d if isinstance(d, int) else 0 for d in each.dims or (0,) * each.ndim]
    stack = call_packed(
        "vm.builtin.sequence_stack",
        (sequence, PrimValue(axis), ShapeExpr(tuple(empty)), const(0, each.dtype)),
        (tensor(None, each.dtype, each.ndim + 1),),
        pure=True,
    )
    return node.bind(stack)
