"""Which arguments of a query are one, by congruence: equal operands, equal results."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from relax_egraph.verify.instances.problem import Contradiction
from relax_egraph.verify.instances.query import Apply, Arg, Literal


@dataclass(slots=True)
class Congruence:
    """Classes of arguments of `applies`, as a forest of parents."""

    applies: Sequence[Apply]
    parent: dict[str, Arg] = field(default_factory=dict[str, Arg])

    def find(self, arg: Arg) -> Arg:
        """What stands for `arg` and all that are one with it: a literal, if one is among them."""
        while isinstance(arg, str) and arg in self.parent:
            arg = self.parent[arg]
        return arg

    def unite(self, a: Arg, b: Arg) -> None:
        """Make `a` and `b` one; raises `Contradiction` of two literals."""
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
        """Make the results of equal applications one, and the operands of one result.

        A value may be made in several ways, but an instance makes it in one.
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
        """Make applications with one result one; whether there was something to do."""
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
