"""Random instances of what a rule matches.

What is known spreads to what follows from it; then the slots of one node, preferably of one that
is half known, are filled by a proposal, which is taken back if a premise or the operator's rule
refuses it.  Nothing here has to be complete: egglog has the last word on what matches.
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
"""Operators that fit anything: they are drawn when what they connect is known."""


@dataclass(frozen=True, slots=True)
class Instance:
    """Values for all variables of `problem`; `rules` are those that it is matched by.

    `arrays` are elements of leaves by variable, and `extents` those of symbols: as they were when
    a difference was seen.  What is not among them is random.
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
        """What is known of a tensor."""
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
    """An instance, or ``None`` if this attempt came to nothing; `refused` counts what refused.

    It is of few and small extents if `small`; the usual dtype is one of `dtypes`, if given.
    """
    said = {d.value for d in problem.dtypes.values() if isinstance(d, Literal)}
    palette = palette_of(random, small, dtypes or sorted(map(str, said)))
    known = Known(problem, palette, refused)
    return Instance(problem, known.values, rules) if _complete(known) else None


def _complete(known: Known) -> bool:
    """Draw all that the program of an instance says; whether that was possible."""
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
    """Whether one of so many tries to `draw` something agrees with what is known."""
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
    """The node to draw: one that is connected to what is known, and the pickiest of these.

    What a rule makes is drawn last: it follows from what is matched, and drawn first it would
    decide that, as a mean over no axes does that a norm is over none.
    """
    every = [(n, *known.open(n)) for n in known.problem.nodes]
    waiting = [(n, connected) for n, missing, connected in every if missing]
    return min(waiting, key=lambda w: (w[0].made, not w[1], _freedom(w[0])))[0] if waiting else None


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
    """Draw a variable that no node tells."""
    if sort in VALUES:
        shape, dtype = known.of(variable)
        if known.get(shape) is MISSING:
            known.values[str(shape)] = known.palette.shape()
        if known.get(dtype) is MISSING:
            known.values[str(dtype)] = known.palette.dtype
    elif sort and sort not in ("Tensors", "Tuple"):
        known.values[variable] = any_value(known, variable, sort)


def _freedom(node: Application) -> int:
    """How much an operator fits: the pickier, the earlier it is drawn."""
    if node.op is None:
        return 0
    if node.op.name in _LAST:
        return 9
    if node.op.elementwise:
        return 6
    if node.op.name in CONTRACTION:
        return 1 if node.op.name == "matmul" else 0
    return 3 if node.op.name in MOVEMENT else 2
