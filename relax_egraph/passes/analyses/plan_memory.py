"""Computes the memory plans that `static_plan_block_memory` writes into a module.

plan = plan_memory(module)["main"]
plan.tensors[0].offset           # in bytes, over the symbols of the function
plan.peak({"n": 128})            # arenas, escaping tensors and weights, where n is 128
"""

from collections.abc import Mapping, Sequence

from relax_egraph.ir.expr import Function, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.walk import constants_of
from relax_egraph.passes.analyses.byte_sizes import ByteSizes, Extent
from relax_egraph.passes.analyses.lifetimes import Lifetimes, Place, Tensor
from relax_egraph.passes.analyses.memory_plan import MemoryPlan, PlannedStorage, PlannedTensor
from relax_egraph.passes.analyses.offset_packing import Block, largest_live, pack
from relax_egraph.passes.analyses.shared_tensors import Group, groups_of
from relax_egraph.passes.analyses.tensor_lifetimes import lifetimes_of
from relax_egraph.passes.analyses.upper_bounds import at_most, upper_bounds


def plan_memory(module: IRModule) -> dict[str, MemoryPlan]:
    """A plan for each relax function of `module`, which `call_tir_rewrite` has rewritten.

    Raises `IllFormed` for a malformed attribute of upper bounds.
    """
    lifetimes = lifetimes_of(module)
    return {
        name: _planned(function, lifetimes[name], upper_bounds(name, function))
        for name, function in module.relax_functions()
    }


def _planned(function: Function, lifetimes: Lifetimes, bounds: Mapping[str, int]) -> MemoryPlan:
    sizes = ByteSizes()
    groups = groups_of(lifetimes)
    blocks = {
        id(g): Block(g.size if g.is_own else at_most(g.size, bounds), g.begin, g.end)
        for g in groups
    }
    storages: list[PlannedStorage] = []
    place: dict[int, tuple[int, Extent]] = {}
    arenas: dict[Place | None, list[Group]] = {}
    for group in groups:
        if group.is_own:
            place[id(group)] = len(storages), Extent()
            storages.append(PlannedStorage(group.size.dim(), group.first.var, is_arena=False))
        else:
            arenas.setdefault(group.binder, []).append(group)
    for binder, members in arenas.items():
        packing = pack([blocks[id(g)] for g in members], sizes)
        for group, offset in zip(members, packing.offsets, strict=True):
            place[id(group)] = len(storages), offset
        before = _before(members, 1 if binder is None else binder.sequence)
        storages.append(PlannedStorage(packing.size.dim(), before, is_arena=True))
    every = sorted(
        ((t.begin, t.number, t, g) for g in groups for t in g.tensors), key=lambda e: e[:2]
    )
    tensors = [_tensor(t, g, *place[id(g)]) for _, _, t, g in every]
    return MemoryPlan(
        tuple(tensors),
        tuple(storages),
        tuple(lifetimes.steps),
        tuple(live.dim() for live in largest_live(list(blocks.values()), sizes)),
        tuple(lifetimes.unknown),
        sum(c.data.nbytes for c in constants_of(function)),
    )


def _tensor(tensor: Tensor, group: Group, storage: int, offset: Extent) -> PlannedTensor:
    return PlannedTensor(
        tensor.var,
        tensor.shape,
        tensor.dtype,
        tensor.size.dim(),
        storage,
        offset.dim(),
        tensor.begin,
        max(tensor.begin, tensor.end),
        group.replaced.get(tensor.var),
    )


def _before(members: Sequence[Group], sequence: int) -> Var:
    """The binding of `sequence` that allocates the first tensor of `members`, or contains it."""
    first = min((g.first for g in members), key=lambda t: t.number)
    return next(p.binding for p in first.places if p.sequence == sequence)
