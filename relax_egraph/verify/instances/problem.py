"""What an instance of a query has to satisfy: operators as nodes, and premises."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from relax_egraph.ir.op import Op
from relax_egraph.verify.instances.query import Apply, Arg

VALUES = ("Tensor", "Kernel")
"""Sorts of which a value is an array."""


class Contradiction(Exception):
    """A query that nothing satisfies, or that speaks of what is not drawn; the message says why."""


@dataclass(frozen=True, slots=True)
class Application:
    """An operator applied; `tensors` are the elements of its ``Tensors`` operands, by variable.

    `op` is ``None`` of what is no operator: ``K.load``, ``R.tuple_get``, ``R.const``.  A node that
    is `made` by a rule is not matched, but what it is made of must fit.
    """

    head: str
    op: Op | None
    args: tuple[Arg, ...]
    result: str
    text: str
    made: bool = False


@dataclass(frozen=True, eq=False)
class Problem:
    """What an instance has to satisfy.

    `elements` are the tensors in a ``Tensors`` variable; `scalars` the tensors of one known value,
    which may be a variable; `positions` those whose place in the program a rule asks for.  `names`
    says what stands for a variable that is the same as another.
    """

    nodes: tuple[Application, ...]
    premises: tuple[Apply, ...]
    sorts: Mapping[str, str]
    elements: Mapping[str, tuple[str, ...]]
    scalars: Mapping[str, Arg]
    constants: frozenset[str]
    positions: Mapping[str, Arg]
    made: Mapping[str, Application]
    shapes: Mapping[str, Arg]
    dtypes: Mapping[str, Arg]
    names: Mapping[str, Arg]

    @cached_property
    def needed(self) -> Mapping[str, str]:
        """The variables that a program of these nodes says, and their sorts."""
        found: dict[str, str] = {}
        nodes = {n.result: n for n in self.nodes if not n.made}
        todo = list(nodes.values())
        for node in todo:
            for arg in (*node.args, node.result):
                for t in self.tensors(arg):
                    if t not in nodes and t in self.made:
                        nodes[t] = self.made[t]
                        todo.append(nodes[t])
                self._need(arg, found)
        for arg in (*self.scalars, *self.constants, *self.positions, *self.scalars.values()):
            self._need(arg, found)
        for arg in self.positions.values():
            self._need(arg, found)
        return found

    def tensors(self, arg: Arg) -> tuple[str, ...]:
        """The tensors that `arg` is, or is a list of."""
        if not isinstance(arg, str):
            return ()
        return self.elements.get(arg, (arg,) if self.sorts.get(arg) in VALUES else ())

    def _need(self, arg: Arg, found: dict[str, str]) -> None:
        for t in self.tensors(arg) or ((arg,) if isinstance(arg, str) else ()):
            found[t] = self.sorts.get(t, "")
            for part in (self.shapes.get(t), self.dtypes.get(t)):
                if isinstance(part, str):
                    found[part] = self.sorts.get(part, "")
