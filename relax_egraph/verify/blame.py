"""Blame for wrong instances, in which several rules took part."""

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from relax_egraph.verify.instances.draw import Instance

_SEVERAL = 3
"""The least number of instances for an estimate of how often a rule is wrong."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The instances that matched under the rule `head`, and the `wrong` ones among them."""

    head: str
    fired: Sequence[Instance]
    wrong: Set[Instance]

    def suspects(self, names: Iterable[str]) -> list[str]:
        """The rules among `names` with the largest shares of wrong instances."""
        shares = {name: self.share(name) for name in names}
        most = max(shares.values(), default=0)
        return [name for name, share in shares.items() if share and share >= most / 2]

    def worse(self, name: str) -> list[str]:
        """The rules that are wrong more often than the rule `name`."""
        uses, share = Counter(r.name for i in self.fired for r in i.rules), self.share(name)
        return [n for n, k in uses.items() if k >= _SEVERAL and self.share(n) > share]

    def explained(self, name: str, by: Sequence[str]) -> bool:
        """Whether the rule `name` is wrong only in instances in which rules of `by` took part."""
        own = self.of(name)
        alone = [i for i in own if not any(uses(self.head, i, other) for other in by)]
        return len(alone) >= _SEVERAL and not any(i in self.wrong for i in alone)

    def share(self, name: str) -> float:
        """The share of wrong instances among those with the rule `name`."""
        own = self.of(name)
        return sum(i in self.wrong for i in own) / len(own) if own else 0

    def of(self, name: str) -> list[Instance]:
        """The instances in which the rule `name` took part."""
        return [i for i in self.fired if uses(self.head, i, name)]


def uses(head: str, instance: Instance, name: str) -> bool:
    """Whether the rule `name` took part in drawing an `instance` of the rule `head`."""
    return name == head or any(r.name == name for r in instance.rules)
