"""The function that runs native programs: its frame, its blocks, and how it reads operands."""

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Operand, Value
from relax_egraph.lower.emit.module_text import I64, PTR, Module, Type
from relax_egraph.lower.runtime.driver_objects import (
    TYPE,
    Head,
    field,
    is_null,
    set_word,
    word,
)
from relax_egraph.vm.native.kinds import MOST_AXES


class DriverFunction(Function):
    """A function with a block for each instruction, which ends with a jump to ``next``.

    Whoever writes the rest sets `head` and `frame`, and has the blocks ``refused``, where a call
    leaves the program, and ``leave``, where it ends; `at` has the address of the instruction.
    """

    head: Value
    frame: Value

    def __init__(self, module: Module, name: str) -> None:
        super().__init__(module, name, (PTR, PTR, I64, PTR), result=PTR)
        self.at = self.allocate(PTR, 1)
        self.answer = self.allocate(PTR, 1)
        self.state = self.allocate(PTR, 1)  # of the thread, while it is without the lock
        self.second = self.allocate(I64, 1)  # when signals were looked for, in turns of loops
        self._room = self.allocate(I64, MOST_AXES)

    def begin(self, label: str) -> None:
        """What follows is block `label`."""
        self._open(label)

    def go(self, label: str) -> None:
        """Jump."""
        self.line(f"br label %{label}")

    def go_if(self, condition: Value, label: str) -> None:
        """Jump where `condition` holds."""
        stay = self._label()
        self._branch(condition, label, stay)
        self._open(stay)

    def _refuse_if(self, condition: Value) -> None:
        self.go_if(condition, "refused")

    def _require(self, condition: Value) -> None:
        """Leave the program unless `condition` holds."""
        stay = self._label()
        self._branch(condition, stay, "refused")
        self._open(stay)

    def _next(self, at: Value, length: Operand) -> None:
        """Go on `length` words further."""
        self.store(self.address(at, length, I64), self.at)
        self.go("next")

    def _from(self, at: Value, operand: Operand, type: Type = I64) -> Value:
        """The word of the frame that `operand` names."""
        return word(self.frame, word(at, operand), type)

    def _to(self, at: Value, operand: Operand, value: Value) -> None:
        """Write the word of the frame that `operand` names."""
        set_word(self.frame, word(at, operand), value)

    def _given(self, at: Value, operand: Operand) -> Value:
        """The argument that `operand` names, or the field of one that a word of the frame has."""
        number = word(at, operand)
        place = self.binary("^", number, self.binary(">>", number, 63))
        base = self.select(self.compare("<", number, 0), self.frame, self.args[1])
        return word(base, place, PTR)

    def _made(self, at: Value, operand: Operand, made: Value) -> None:
        """Keep what was made; leave if it could not be."""
        self._refuse_if(is_null(made))
        self._to(at, operand, made)

    def _is_type(self, given: Value, type: Head) -> Value:
        return self.compare("==", field(given, TYPE, PTR), word(self.head, type, PTR))
