"""Groups of tensors that share bytes: outputs in place of operands, and results of branches."""

from dataclasses import dataclass, field

from relax_egraph.ir.expr import Var
from relax_egraph.ir.polynomial import Polynomial
from relax_egraph.passes.analyses.lifetimes import (
    KernelCall,
    Lifetimes,
    Meeting,
    Place,
    Roots,
    Tensor,
)
from relax_egraph.tir.in_place import in_place_pairs


@dataclass(slots=True, eq=False)
class Group:
    """Tensors of one size that share the same bytes, in order of allocation.

    The bytes are needed from step `begin` to step `end`.  A group `is_own` if it has a storage of
    its own: the tensor outlives the call, or a branch decides which tensor it is.  `replaced` maps
    a tensor to the operand whose bytes it reuses.
    """

    tensors: list[Tensor]
    begin: int
    end: int
    is_own: bool
    replaced: dict[Var, str] = field(default_factory=dict[Var, str])

    @property
    def first(self) -> Tensor:
        """The tensor that is allocated first."""
        return self.tensors[0]

    @property
    def size(self) -> Polynomial:
        """The bytes of each tensor."""
        return self.first.size

    @property
    def binder(self) -> Place | None:
        """The binding of the symbols of the size."""
        return self.first.binder

    def take(self, other: "Group") -> None:
        """Merge the tensors of `other` into this group."""
        self.tensors += other.tensors
        if other.first.number < self.tensors[-len(other.tensors) - 1].number:
            self.tensors.sort(key=lambda t: t.number)
        self.begin, self.end = min(self.begin, other.begin), max(self.end, other.end)
        self.is_own |= other.is_own
        self.replaced |= other.replaced


def groups_of(lifetimes: Lifetimes) -> list[Group]:
    """The tensors of a function in groups, in order of allocation.

    The output of a loop function reuses the bytes of an operand that is dead after the call, where
    `in_place_pairs` allows it.
    """
    return _Groups(lifetimes).merged()


class _Groups:
    def __init__(self, lifetimes: Lifetimes) -> None:
        self._lifetimes = lifetimes
        self._tensors = lifetimes.tensors
        self._group = {
            t.var: Group([t], t.begin, max(t.begin, t.end), t.leaves)
            for t in self._tensors.values()
        }
        meetings = [e for e in lifetimes.events if isinstance(e, Meeting)]
        self._of_branches = {root for m in meetings for r in m.results for root in r}

    def merged(self) -> list[Group]:
        """All groups, after every call and branch of the function."""
        for event in self._lifetimes.events:
            if isinstance(event, KernelCall):
                self._kernel(event)
            else:
                self._meeting(event)
        return list(dict.fromkeys(self._group[var] for var in self._tensors))

    def _kernel(self, call: KernelCall) -> None:
        inputs = len(call.function.inputs)
        reused: set[Group] = set()
        for j in range(call.function.num_outputs):
            output = self._only(call.operands[inputs + j])
            if output is None or output.begin != call.step:
                continue
            for i in range(inputs):
                operand = self._only(call.operands[i])
                if operand is None or operand in reused or operand is output:
                    continue
                if self._may_replace(call, j, output, operand):
                    reused.add(operand)
                    self._replace(output, operand)
                    break

    def _may_replace(self, call: KernelCall, j: int, output: Group, operand: Group) -> bool:
        if operand.end != call.step or operand.is_own or len(output.tensors) > 1:
            return False
        if operand.size != output.size or operand.binder != output.binder:
            return False
        new = output.first
        bound = new.leaves or new.var in self._of_branches
        if bound and any(t.sequence != new.sequence for t in operand.tensors):
            return False  # the storage stands where the tensor that leaves does
        pairs = in_place_pairs(call.function)
        return all(
            (i, j) in pairs or all(self._group.get(root) is not operand for root in roots)
            for i, roots in enumerate(call.operands[: len(call.function.inputs)])
        )

    def _replace(self, output: Group, operand: Group) -> None:
        output.replaced[output.first.var] = operand.tensors[-1].var.name
        self._join(operand, output)

    def _meeting(self, meeting: Meeting) -> None:
        """Unite the results of two branches; if that is impossible, each gets its own storage."""
        first, second = map(self._only, meeting.results)
        if first is second and first is not None:
            return
        (begin, middle), end = meeting.begin, meeting.step
        if (
            first is not None
            and second is not None
            and not (first.is_own or second.is_own)
            and begin <= first.begin < middle <= second.begin < end
            and (first.size, first.binder) == (second.size, second.binder)
        ):
            self._join(first, second)
            return
        for root in meeting.results[0] | meeting.results[1]:
            group = self._group.get(root)
            if group is not None and begin <= group.begin:
                group.is_own = True

    def _join(self, first: Group, second: Group) -> None:
        first.take(second)
        self._group |= dict.fromkeys((t.var for t in second.tensors), first)

    def _only(self, roots: Roots) -> Group | None:
        """The group that a value lies in, if there is exactly one and the function allocates it."""
        groups = {self._group.get(root) for root in roots}
        return groups.pop() if len(groups) == 1 else None
