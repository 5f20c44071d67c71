"""Registers for the variables of a function: each is taken again after the last use."""

from collections import Counter

from relax_egraph.ir.expr import Expr, Function, Var
from relax_egraph.ir.walk import post_order_visit
from relax_egraph.vm.bytecode import Kind, Operand


class Registers:
    """Where the variables of `function` are while its code is emitted, in order.

    What is read is let go at the next `settle`.  A variable that both branches of an ``If``
    use stays until the second is emitted.  Parameters keep their registers.
    """

    def __init__(self, function: Function) -> None:
        self._uses: Counter[Var] = Counter()
        self._places: dict[Var, Operand] = {}
        self._left: dict[int, int] = {}
        self._free: list[int] = []
        self._read: list[int] = []
        post_order_visit(function, self._count)
        for param in function.params:
            place = self.new()
            self._places[param] = place
            self._left[place.value] = 1 + self._uses[param]

    def new(self) -> Operand:
        """A register that no variable is in."""
        index = self._free.pop() if self._free else len(self._left)
        self._left[index] = 0
        return Operand(Kind.REGISTER, index)

    def is_used(self, var: Var) -> bool:
        """Whether anything reads `var`."""
        return self._uses[var] > 0

    def define(self, var: Var, place: Operand) -> None:
        """Let `var` be what is in `place`, which may be another variable's."""
        self._places[var] = place
        if place.kind is Kind.REGISTER:
            self._left[place.value] += self._uses[var]

    def read(self, var: Var) -> Operand:
        """Where `var` is; one use of it is done."""
        place = self._places[var]
        if place.kind is Kind.REGISTER:
            self._read.append(place.value)
        return place

    def temporary(self, place: Operand) -> Operand:
        """`place`, new, read once, by the instruction that comes next."""
        self._left[place.value] = 1
        self._read.append(place.value)
        return place

    def settle(self) -> None:
        """Free the registers whose last use has been read."""
        for index in self._read:
            self._left[index] -= 1
            if self._left[index] == 0:
                self._free.append(index)
        self._read.clear()

    def _count(self, expr: Expr) -> None:
        if isinstance(expr, Var):
            self._uses[expr] += 1
