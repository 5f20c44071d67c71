"""Random instances of a rule's pattern.

Known values propagate to all values that follow from them.  Then a proposal fills the slots of one
node, preferably of a node with known operands; it is withdrawn if a premise or the operator's
struct-info rule refuses it.  The search may be incomplete: egglog decides what matches.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.errors import IllTyped
from relax_egraph.ir.struct_info import TensorStructInfo, tensor
from relax_egraph.verify.instances.choices import any_value
from relax_egraph.verify.instances.contraction import CONTRACTION
from relax_egraph.verify.instances.known import Known
from relax_egraph.verify.instances.movement import MOVEMENT
from relax_egraph.verify.instances.primitives import Fails
from relax_egraph.verify.instances.problem import VALUES, Application, Problem
from relax_egraph.verify.instances.propose import propose
from relax_egraph.verify.instances.query import Arg, Literal
from relax_egraph.verify.instances.slots import MISSING, Slots, palette_of
from relax_egraph.verify.values.inputs import Array

_TRIES = 16
_LAST = ("reshape", "broadcast_to")
"""Operators that accept any operand, which are drawn after the values that they connect."""


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """Values for all variables of `problem`; `rules` are the rules that should match.

    Instances are compared by identity: two draws of the same values count twice.

    `arrays` are the elements of leaves by variable, and `extents` the extents of symbols, for which
    a difference was seen.  All others are random.
    """

    problem: Problem
    values: Mapping[str, Any]
    rules: tuple[Rule, ...]
    arrays: Mapping[str, Array] = field(default_factory=dict[str, Array])
    extents: Mapping[str, int] = field(default_factory=dict[str, int])

    def get(self, arg: Arg) -> Any:
        """The value of `arg`."""
        return arg.value if isinstance(arg, Literal) else self.values[arg]

    def info(self, variable: str) -> TensorStructInfo:
        """The struct info of a tensor."""
        shape, dtype = self.problem.shapes[variable], self.problem.dtypes[variable]
        return tensor(self.get(shape), self.get(dtype))


def draw_instance(
    problem: Problem,
    rules: tuple[Rule, ...],
    random: Random,
    refused: Counter[str],
    small: bool = False,
    dtypes: Sequence[str] = (),
) -> Instance | None:
    """An instance, or ``None`` if this attempt fails; `refused` counts the reasons.

    A `small` instance has few and small extents.  The usual dtype is one of `dtypes`, if any.
    """
    literals = {d.value for d in problem.dtypes.values() if isinstance(d, Literal)}
    palette = palette_of(random, small, dtypes or sorted(map(str, literals)))
    known = Known(problem, palette, refused)
    return Instance(problem, known.values, rules) if _complete(known) else None


def _complete(known: Known) -> bool:
    """Draw all values in the program of an instance; return whether that was possible."""
    problem = known.problem
    if not _tried(known, lambda _: None, 1):
        return False
    while (node := _next(known)) is not None:
        if not _tried(known, lambda attempt, node=node: _fill(known, node, attempt), _TRIES):
            return False
    constants = dict.fromkeys(problem.scalars.values(), "f64")
    for variable, sort in (*constants.items(), *problem.needed.items()):
        if known.get(variable) is not MISSING or not isinstance(variable, str):
            continue
        if not _tried(known, lambda _, v=variable, s=sort: _draw(known, v, s), _TRIES):
            return False
    return all(known.static(t) for t in problem.constants)


def _tried(known: Known, draw: Callable[[int], None], tries: int) -> bool:
    """Whether one of `tries` calls of `draw` agrees with the known values; others are undone."""
    for attempt in range(tries):
        before = known.values, known.done
        known.values, known.done = dict(known.values), set(known.done)
        try:
            draw(attempt)
            known.spread()
            return True
        except (Fails, IllTyped, IndexError, ValueError):
            known.values, known.done = before
    return False


def _next(known: Known) -> Application | None:
    """The node to draw next: one with known operands, the most restrictive of these.

    Nodes of the right side come last: they follow from the pattern, and drawn first they would
    determine it, as a mean over no axes would determine a norm over none.
    """
    every = [(n, *known.open(n)) for n in known.problem.nodes]
    waiting = [(n, connected) for n, missing, connected in every if missing]
    return (
        min(waiting, key=lambda w: (w[0].built, not w[1], _freedom(w[0])))[0] if waiting else None
    )


def _fill(known: Known, node: Application, attempt: int) -> None:
    """Fill the slots of `node`; raises `Fails` or `IllTyped`."""
    if node.op is None:
        for arg in node.args:
            if isinstance(arg, str) and known.get(arg) is MISSING:
                _draw(known, arg, known.problem.sorts.get(arg, ""))
        return
    slots = Slots(node, known.problem, known.values, known.palette)
    propose(slots, known, attempt)
    known.values.update(slots.drawn)
    try:
        known.agrees(node)
    except (Fails, IllTyped):
        known.refused[node.text] += 1
        raise


def _draw(known: Known, variable: str, sort: str) -> None:
    """Draw a variable that no node determines."""
    if sort in VALUES:
        shape, dtype = known.of(variable)
        if known.get(shape) is MISSING:
            known.values[str(shape)] = known.palette.shape()
        if known.get(dtype) is MISSING:
            known.values[str(dtype)] = known.palette.dtype
    elif sort and sort not in ("Tensors", "Tuple"):
        known.values[variable] = any_value(known, variable, sort)


def _freedom(node: Application) -> int:
    """A sort key: the number of operands that an operator accepts; restrictive ones go first."""
    if node.op is None:
        return 0
    if node.op.name in _LAST:
        return 9
    if node.op.elementwise:
        return 6
    if node.op.name in CONTRACTION:
        return 1 if node.op.name == "matmul" else 0
    return 3 if node.op.name in MOVEMENT else 2
