"""Schedules loop functions, and passes prepared operands to their calls.

A schedule may declare operands that are `Prepared` from constants: a packed weight, or the results
of loops on constants alone.  A function is scheduled for each set of inputs that are constants in
some of its calls.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from relax_egraph.ir.expr import Call, Constant, Expr, Function, GlobalVar, Tuple
from relax_egraph.ir.kernel import ANCHOR
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.names import unused
from relax_egraph.ir.op import OPS
from relax_egraph.ir.walk import post_order_visit
from relax_egraph.lower.prepare_constants import Preparation
from relax_egraph.lower.schedule import schedule_with
from relax_egraph.lower.schedule.scheduled import Scheduled
from relax_egraph.passes.infra import module_pass
from relax_egraph.passes.share_constants import share_constants
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.stmt import PrimFunc
from relax_egraph.vm.promises import KernelPromise

LOG = logging.getLogger(__name__)

Numbers: TypeAlias = frozenset[int]
"""The numbers of the inputs of a loop function that are constants."""

NOTHING: Numbers = frozenset()


@module_pass(name="schedule", required=(share_constants,))
def schedule_calls(module: IRModule) -> IRModule:
    """Schedule each loop function, and pass the prepared operands to its calls.

        lv = R.call_tir(cls.dense, (x, w), …)       # w: a constant of shape (768, 300)
        -->
        lv = R.call_tir(cls.dense, (x, packed), …)  # packed: of shape (768 * 304,)

    If `dense` is also called with operands that are not constant, it stays, and the call above is
    of a new function ``dense_packed``.
    """
    functions: dict[str, BaseFunc] = dict(module.functions)
    calls, names = _constants_of_calls(module), set(functions)
    variants: dict[tuple[str, Numbers], _Variant] = {}
    for name, function in module.functions.items():
        if isinstance(function, PrimFunc) and "schedule" not in function.attrs:
            for constants, variant in _variants(name, function, calls.get(name, ()), names).items():
                variants[name, constants] = variant
                functions[variant.name] = variant.scheduled.function
    preparer = _Preparer(variants)
    for name, function in module.relax_functions():
        prepared = preparer.visit_expr(function)
        assert isinstance(prepared, Function)
        functions[name] = prepared
    return replace(module, functions=functions)


def _constants_of_calls(module: IRModule) -> Mapping[str, Collection[Numbers]]:
    """The sets of inputs that are constants in calls, by the name of the callee.

    A function that is used in other ways has the empty set, too.
    """
    uses, calls = Counter[str](), defaultdict[str, list[Numbers]](list)

    def visit(expr: Expr) -> None:
        if isinstance(expr, GlobalVar):
            uses[expr.name] += 1
        elif call := _call_of_loops(expr):
            calls[call.callee.name].append(call.constants)

    for _, function in module.relax_functions():
        post_order_visit(function, visit)
    for name, count in uses.items():
        if count > len(calls[name]):
            calls[name].append(NOTHING)
    return {name: dict.fromkeys(sets) for name, sets in calls.items()}


@dataclass(frozen=True, slots=True)
class _Call:
    """The parts of ``R.call_tir(callee, operands, *sizes)``."""

    callee: GlobalVar
    operands: tuple[Expr, ...]
    sizes: tuple[Expr, ...]

    @property
    def constants(self) -> Numbers:
        return frozenset(k for k, o in enumerate(self.operands) if isinstance(o, Constant))


def _call_of_loops(expr: Expr) -> _Call | None:
    match expr:
        case Call(op=op, args=[GlobalVar() as callee, Tuple(fields=operands), *sizes]):
            return _Call(callee, operands, tuple(sizes)) if op is OPS["call_tir"] else None
        case _:
            return None


@dataclass(frozen=True, slots=True)
class _Variant:
    """The variant `name` of a loop function of `inputs`, for calls with certain constants."""

    name: str
    inputs: tuple[Buffer, ...]
    scheduled: Scheduled


def _variants(
    name: str, function: PrimFunc, calls: Collection[Numbers], names: set[str]
) -> Mapping[Numbers, _Variant]:
    """`function`, scheduled for each set of constants; sets of the same sources share it.

    The variant without prepared operands keeps the name, or the first one if each has some.
    """
    scheduled = {constants: schedule_with(function, constants) for constants in calls or (NOTHING,)}
    for one in scheduled.values():
        promised, actual = (one.function.attrs.get(key) for key in (ANCHOR, "schedule"))
        if promised not in (None, actual):
            LOG.info(
                "%s: scheduled as %s, priced as %s, which does not fit", name, actual, promised
            )
    sources_of = {
        constants: frozenset(b for p in s.prepared for b in p.sources)
        for constants, s in scheduled.items()
    }
    variants: dict[Collection[Buffer], _Variant] = {}
    for constants, sources in sorted(sources_of.items(), key=lambda item: bool(item[1])):
        if sources not in variants:
            new = unused(f"{name}_packed", names) if variants else name
            variants[sources] = _Variant(new, function.inputs, scheduled[constants])
    return {constants: variants[sources] for constants, sources in sources_of.items()}


class _Preparer(ExprMutator):
    """Passes prepared constants to `variants` of loop functions."""

    def __init__(self, variants: Mapping[tuple[str, Numbers], _Variant]) -> None:
        super().__init__()
        self._variants = variants
        self._preparation = Preparation(p for v in variants.values() for p in v.scheduled.prepared)

    def visit_call(self, call: Call) -> Expr:
        visited = super().visit_call(call)
        parts = _call_of_loops(visited)
        variant = parts and self._variants.get((parts.callee.name, parts.constants))
        if parts is None or variant is None or not variant.scheduled.prepared:
            return visited
        assert isinstance(visited, Call)
        operands = dict(zip(variant.inputs, parts.operands, strict=True))
        for prepared in variant.scheduled.prepared:
            sources = [operands[b] for b in prepared.sources]
            constants = [c for c in sources if isinstance(c, Constant)]
            operands |= self._preparation.results(prepared, constants)
        function = variant.scheduled.function
        callee = GlobalVar(variant.name, function.struct_info)
        fields = tuple(operands[b] for b in function.inputs)
        return replace(visited, args=(callee, Tuple(fields), *parts.sizes))


def promises_in(functions: Mapping[str, PrimFunc]) -> dict[str, KernelPromise]:
    """The promises of the optimizer for scheduled `functions`, and their actual schedules."""
    promises: dict[str, KernelPromise] = {}
    for name, function in functions.items():
        match function.attrs:
            case {"anchor": str(anchor), "seconds": float(seconds), "schedule": str(schedule)}:
                promises[name] = KernelPromise(anchor, seconds, schedule)
            case _:
                pass
    return promises
