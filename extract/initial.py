"""The initial program: a greedy choice, from which multi-output kernels are proposed.

Each class takes the choice that is cheapest together with its share of the cost of its inputs.  The
program is not optimal, but it shows which tensors are in memory, who reads them, and in what order.
"""

from dataclasses import dataclass, field

from relax_egraph.egraph.view import ClassId, View
from relax_egraph.extract.choices import ChoiceTable, PricedChoice


@dataclass(frozen=True, slots=True)
class InitialProgram:
    """The choice for each class, inputs first, and the dependences between the classes.

    `readers` of a class are the classes whose choices read it;  `level` is the length of the
    longest chain of choices that ends at it.  `ancestors` has its transitive inputs and itself as a
    bit set.
    """

    choices: dict[ClassId, PricedChoice] = field(default_factory=dict[ClassId, PricedChoice])
    readers: dict[ClassId, list[ClassId]] = field(default_factory=dict[ClassId, list[ClassId]])
    level: dict[ClassId, int] = field(default_factory=dict[ClassId, int])
    bit: dict[ClassId, int] = field(default_factory=dict[ClassId, int])
    ancestors: dict[ClassId, int] = field(default_factory=dict[ClassId, int])

    def needs(self, c: ClassId, other: ClassId) -> bool:
        """Whether `c` is `other` or depends on it."""
        return c == other or bool(self.ancestors.get(c, 0) & self.bit.get(other, 0))

    def append(self, c: ClassId, priced: PricedChoice) -> None:
        """Choose `priced` for class `c`, whose inputs are free or in the program already."""
        self.bit[c] = 1 << len(self.bit)
        self.level[c], self.ancestors[c] = 0, self.bit[c]
        for d in dict.fromkeys(priced.choice.inputs):
            self.readers.setdefault(d, []).append(c)
            self.level[c] = max(self.level[c], 1 + self.level.get(d, 0))
            self.ancestors[c] |= self.ancestors.get(d, 0)
        self.choices[c] = priced


def initial_program(view: View, table: ChoiceTable) -> InitialProgram:
    """The choices that look cheapest, from the roots down.

    Where they depend on each other in a cycle, one of the dependences is ignored.
    """

    def total(priced: PricedChoice) -> float:
        return priced.cost + sum([table.shared_cost[k] for k in priced.choice.inputs])

    program = InitialProgram()
    entered: dict[ClassId, PricedChoice] = {}
    stack = [root for root in reversed(view.roots) if table.by_class.get(root)]
    while stack:
        c = stack[-1]
        if c not in entered:
            entered[c] = min(table.by_class[c], key=total)
            inputs = entered[c].choice.inputs
            stack.extend(d for d in reversed(inputs) if table.by_class.get(d) and d not in entered)
        else:
            stack.pop()
            if c not in program.choices:
                program.append(c, entered[c])
    return program
