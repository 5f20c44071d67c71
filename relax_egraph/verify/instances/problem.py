"""The constraints on an instance of a query: applications of operators, and premises."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from relax_egraph.ir.op import Op
from relax_egraph.verify.instances.query import Apply, Arg

VALUES = ("Tensor", "Kernel")
"""The sorts of arrays."""


class Contradiction(Exception):
    """A query without instances, or with operators that are not drawn; the message says why."""


@dataclass(frozen=True, slots=True)
class Application:
    """An application of an operator to arguments.

    `op` is ``None`` for ``K.load``, ``R.tuple_get``, ``R.const`` and the like.  An application that
    is `built` is part of the right side: it is not matched, but its operands must fit.
    """

    head: str
    op: Op | None
    args: tuple[Arg, ...]
    result: str
    text: str
    built: bool = False


@dataclass(frozen=True, eq=False)
class Problem:
    """The constraints on an instance.

    `producers` are the applications by result.  `elements` are the tensors in a ``Tensors``
    variable, `scalars` the tensors with one known value, which may be a variable, and `positions`
    the tensors whose position in the program a rule reads; `uses` are facts about the program that
    it reads, which an instance claims.  `names` maps variables to their
    representatives.
    """

    nodes: tuple[Application, ...]
    premises: tuple[Apply, ...]
    sorts: Mapping[str, str]
    elements: Mapping[str, tuple[str, ...]]
    scalars: Mapping[str, Arg]
    constants: tuple[str, ...]
    positions: Mapping[str, Arg]
    uses: tuple[Apply, ...]
    producers: Mapping[str, Application]
    shapes: Mapping[str, Arg]
    dtypes: Mapping[str, Arg]
    names: Mapping[str, Arg]

    @cached_property
    def needed(self) -> Mapping[str, str]:
        """The variables in the program of an instance, with their sorts."""
        sorts: dict[str, str] = {}
        stated = (*self.scalars, *self.constants, *self.positions)
        nodes = {n.result: n for n in self.nodes if not n.built}
        nodes |= {t: self.producers[t] for t in stated if t in self.producers}
        todo = list(nodes.values())
        for node in todo:
            for arg in (*node.args, node.result):
                for t in self.tensors(arg):
                    if t not in nodes and t in self.producers:
                        nodes[t] = self.producers[t]
                        todo.append(nodes[t])
                self._need(arg, sorts)
        for arg in (*stated, *self.scalars.values(), *self.positions.values()):
            self._need(arg, sorts)
        for arg in (a for use in self.uses for a in use.args):
            self._need(arg, sorts)
        return sorts

    def tensors(self, arg: Arg) -> tuple[str, ...]:
        """The tensor `arg`, or the tensors in the list `arg`."""
        if not isinstance(arg, str):
            return ()
        return self.elements.get(arg, (arg,) if self.sorts.get(arg) in VALUES else ())

    def _need(self, arg: Arg, sorts: dict[str, str]) -> None:
        for t in self.tensors(arg) or ((arg,) if isinstance(arg, str) else ()):
            sorts[t] = self.sorts.get(t, "")
            for part in (self.shapes.get(t), self.dtypes.get(t)):
                if isinstance(part, str):
                    sorts[part] = self.sorts.get(part, "")
