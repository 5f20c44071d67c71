"""The function that runs native programs: its frame, its blocks, and access to operands."""

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

    A subclass sets `head` and `frame`, and writes the blocks ``refused``, where a call leaves the
    program, and ``leave``, where it ends; `at` holds the address of the current instruction.
    """

    head: Value
    frame: Value

    def __init__(self, module: Module, name: str) -> None:
        super().__init__(module, name, (PTR, PTR, I64, PTR), result=PTR)
        self.at = self.allocate(PTR, 1)
        self.answer = self.allocate(PTR, 1)
        self.state = self.allocate(PTR, 1)  # the thread state while the lock is released
        self.second = self.allocate(I64, 1)  # the time of the last check for signals in a loop
        self._room = self.allocate(I64, MOST_AXES)

    def begin(self, label: str) -> None:
        """Begin the block `label`."""
        self._open(label)

    def go(self, label: str) -> None:
        """Jump to the block `label`."""
        self.line(f"br label %{label}")

    def go_if(self, condition: Value, label: str) -> None:
        """Jump to the block `label` if `condition` holds."""
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
        """Continue `length` words further."""
        self.store(self.address(at, length, I64), self.at)
        self.go("next")

    def _from(self, at: Value, operand: Operand, type: Type = I64) -> Value:
        """The word of the frame at the index in `operand`."""
        return word(self.frame, word(at, operand), type)

    def _to(self, at: Value, operand: Operand, value: Value) -> None:
        """Write the word of the frame at the index in `operand`."""
        set_word(self.frame, word(at, operand), value)

    def _argument(self, at: Value, operand: Operand) -> Value:
        """The argument numbered by `operand`; if negative, an object of the frame."""
        number = word(at, operand)
        place = self.binary("^", number, self.binary(">>", number, 63))
        base = self.select(self.compare("<", number, 0), self.frame, self.args[1])
        return word(base, place, PTR)

    def _keep_new(self, at: Value, operand: Operand, created: Value) -> None:
        """Write the object that was `created` to the frame; leave the program if it is null."""
        self._refuse_if(is_null(created))
        self._to(at, operand, created)

    def _is_type(self, value: Value, type: Head) -> Value:
        return self.compare("==", field(value, TYPE, PTR), word(self.head, type, PTR))
