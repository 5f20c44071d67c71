"""What was found of a rule, as data and as text."""

from dataclasses import dataclass, replace
from typing import Any

from relax_egraph.egraph.loader import FloatClass, RuleInfo
from relax_egraph.errors import Span
from relax_egraph.ir import dims
from relax_egraph.ir.struct_info import shape_text
from relax_egraph.verify.classes import Difference
from relax_egraph.verify.draw import Instance
from relax_egraph.verify.problem import VALUES
from relax_egraph.verify.query import Pattern, written
from relax_egraph.verify.tolerance import ORDER, Need, kept


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Operands for which the two sides of a rule differ, or the second has no value."""

    pattern: Pattern
    instance: Instance
    difference: Difference

    def __str__(self) -> str:
        p, d = self.pattern, self.difference
        if p.left is not None and p.right is not None:
            lines = [f"left   {written(p.left)}", f"right  {written(p.right)}"]
        else:
            lines = [f"left   {' '.join(map(written, p.facts))}"]
            lines += [f"  {line}" for line in self.program()]
        if d.problem:
            lines.append(d.problem)
        elif d.left is not None and d.right is not None:
            if d.at is None:
                lines.append(
                    f"left is {d.left.dtype}{d.left.shape}, right is {d.right.dtype}{d.right.shape}"
                )
            else:
                at = list(d.at)
                lines.append(f"at {at} left is {d.left[d.at]}, right is {d.right[d.at]}")
        return "\n".join(lines)

    def program(self) -> list[str]:
        """The instance: its leaves, the terms over them where these are not on the left side."""
        instance, problem = self.instance, self.instance.problem
        found: list[str] = []
        for variable, sort in problem.needed.items():
            if variable.endswith((".shape", ".dtype")):
                continue
            name, node = _shown(variable), problem.made.get(variable)
            if sort in VALUES and node is None and variable in problem.shapes:
                constant = problem.scalars.get(variable)
                value = "" if constant is None else f", each element {instance.get(constant)}"
                found.append(f"{name}: {instance.info(variable)}{value}")
            elif sort in VALUES and node is not None and len(instance.rules) > 1:
                found.append(f"{name} = {node.text}")
            elif sort not in VALUES and variable in instance.values and not name.startswith("_"):
                found.append(f"{name} = {_value(sort, instance.values[variable])}")
        return found


def _shown(variable: str) -> str:
    """A variable without what tells those of several rules apart."""
    return variable.rpartition(".")[2]


def _value(sort: str, value: Any) -> str:
    match sort:
        case "Shape":
            return shape_text(value)
        case "Dim":
            return dims.text(value)
        case _:
            return repr(value)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found of a rule.

    `stated` is the float class that its comment states and `needs` the one that it needs.  It has
    `fired` on so many instances, of these `dtypes` and `ranks`.  `counterexample` is there if it
    needs more than is stated; `reason` says why it has not fired, or how it failed.  It was tried
    `alone`, or else some instances are programs on which others ran, too.
    """

    rule: str
    span: Span
    stated: FloatClass
    needs: Need
    fired: int
    dtypes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    counterexample: Counterexample | None = None
    reason: str = ""
    alone: bool = True

    @property
    def sound(self) -> bool:
        """Whether it fired, and keeps to the class that is stated; unstated is exact."""
        return self.fired > 0 and ORDER.index(self.needs) <= ORDER.index(kept(self.stated))

    def together(self, other: "Verdict") -> "Verdict":
        """The verdict on the same rule from these instances and those of `other`."""
        worst = max((self, other), key=lambda v: ORDER.index(v.needs))
        return replace(
            worst,
            fired=self.fired + other.fired,
            dtypes=tuple(sorted({*self.dtypes, *other.dtypes})),
            ranks=tuple(sorted({*self.ranks, *other.ranks})),
            counterexample=self.counterexample or other.counterexample,
            reason=worst.reason if worst.needs == "unsound" or not self.fired + other.fired else "",
            alone=self.alone and other.alone,
        )

    def __str__(self) -> str:
        head = f"{self.rule} ({self.span}): "
        if self.reason:
            return (
                head + ("unsound: " if self.needs == "unsound" else "never fired: ") + self.reason
            )
        ranks = ", ".join(map(str, self.ranks))
        tried = f"{self.fired} instances, {', '.join(self.dtypes)}, ranks {ranks}"
        if self.sound:
            return f"{head}sound ({self.needs}; {tried})"
        what = "unsound" if self.needs == "unsound" else f"stated {self.stated}, needs {self.needs}"
        return f"{head}{what} ({tried})\n{self.counterexample}"


def silent(rule: RuleInfo, reason: str) -> Verdict:
    """The verdict on a rule that has not fired."""
    return Verdict(rule.name, rule.span, rule.float_class, "exact", 0, reason=reason)
