"""Congruence closure of a query's arguments: equal operands have equal results."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from relax_egraph.verify.instances.problem import Contradiction
from relax_egraph.verify.instances.query import Apply, Arg, Literal


@dataclass(slots=True)
class Congruence:
    """Classes of the arguments of `applies`, as a union-find forest."""

    applies: Sequence[Apply]
    parent: dict[str, Arg] = field(default_factory=dict[str, Arg])

    def find(self, arg: Arg) -> Arg:
        """The representative of the class of `arg`: a literal if the class has one."""
        while isinstance(arg, str) and arg in self.parent:
            arg = self.parent[arg]
        return arg

    def unite(self, a: Arg, b: Arg) -> None:
        """Unite the classes of `a` and `b`; raises `Contradiction` for different literals."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return
        if isinstance(a, Literal) and isinstance(b, Literal):
            raise Contradiction(f"{a.value!r} is not {b.value!r}")
        if isinstance(a, Literal) or (isinstance(b, str) and b.startswith("_")):
            a, b = b, a
        assert isinstance(a, str)
        self.parent[a] = b

    def close(self) -> None:
        """Unite the results of equal applications, and the operands of equal results.

        Several nodes may compute a value in an e-graph, but an instance has one node for it.
        """
        changed = True
        while changed:
            changed = self._unite_operands()
            known: dict[tuple[str, tuple[Arg, ...]], Arg] = {}
            for apply in self.applies:
                if apply.result is None:
                    continue
                key = (apply.head, tuple(map(self.find, apply.args)))
                first = known.setdefault(key, apply.result)
                if self.find(first) != self.find(apply.result):
                    self.unite(first, apply.result)
                    changed = True

    def _unite_operands(self) -> bool:
        """Unite the operands of applications with equal results; return whether any changed."""
        changed = False
        known: dict[Arg, Apply] = {}
        for apply in self.applies:
            if apply.result is None or not apply.head.startswith(("R.", "K.")):
                continue
            first = known.setdefault(self.find(apply.result), apply)
            if first.head != apply.head:
                raise Contradiction(f"{first.text} is not {apply.text}")
            for a, b in zip(first.args, apply.args, strict=True):
                if self.find(a) != self.find(b):
                    self.unite(a, b)
                    changed = True
        return changed
