"""Register allocation for the variables of a function: registers are reused after the last use."""

from collections import Counter

from relax_egraph.ir.expr import Expr, Function, Var
from relax_egraph.ir.walk import post_order_visit
from relax_egraph.vm.bytecode import Kind, Operand


class Registers:
    """The registers of the variables of `function` while its code is emitted, in order.

    Variables that were read are released at the next `settle`.  A variable that both branches of an
    ``If`` use stays until the second is emitted.  Parameters keep their registers.
    """

    def __init__(self, function: Function) -> None:
        self._uses: Counter[Var] = Counter()
        self._places: dict[Var, Operand] = {}
        self._remaining: dict[int, int] = {}
        self._free: list[int] = []
        self._read: list[int] = []
        post_order_visit(function, self._count)
        for param in function.params:
            place = self.new()
            self._places[param] = place
            self._remaining[place.value] = 1 + self._uses[param]

    def new(self) -> Operand:
        """A register without a variable."""
        index = self._free.pop() if self._free else len(self._remaining)
        self._remaining[index] = 0
        return Operand(Kind.REGISTER, index)

    def is_used(self, var: Var) -> bool:
        """Whether anything reads `var`."""
        return self._uses[var] > 0

    def define(self, var: Var, place: Operand) -> None:
        """Place `var` in `place`, which another variable may share."""
        self._places[var] = place
        if place.kind is Kind.REGISTER:
            self._remaining[place.value] += self._uses[var]

    def read(self, var: Var) -> Operand:
        """The place of `var`; counts one use."""
        place = self._places[var]
        if place.kind is Kind.REGISTER:
            self._read.append(place.value)
        return place

    def temporary(self, place: Operand) -> Operand:
        """A new `place`, which the next instruction reads."""
        self._remaining[place.value] = 1
        self._read.append(place.value)
        return place

    def settle(self) -> None:
        """Free the registers whose last use has been read."""
        for index in self._read:
            self._remaining[index] -= 1
            if self._remaining[index] == 0:
                self._free.append(index)
        self._read.clear()

    def _count(self, expr: Expr) -> None:
        if isinstance(expr, Var):
            self._uses[expr] += 1
