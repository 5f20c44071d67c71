"""Words of the frame of a native program under construction."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from relax_egraph.vm.native.numbers import Computed, Number
from relax_egraph.vm.native.program import Address, NativeInstruction, Op, Operand, operand_kinds

_ARITHMETIC = {
    "add": Op.ADD,
    "floordiv": Op.FLOORDIV,
    "mod": Op.MOD,
    "min": Op.MIN,
    "max": Op.MAX,
    "align": Op.ALIGN,
}


@dataclass(slots=True)
class Scope:
    """The words computed in a region: numbers, and `addresses`.

    An address is a word and an offset in bytes.
    """

    words: dict[Computed, int] = field(default_factory=dict[Computed, int])
    addresses: dict[tuple[int, Number], int] = field(default_factory=dict[tuple[int, Number], int])


class Words:
    """Emits instructions, and assigns words of the frame to numbers and constants.

    `scopes` are the current region and its ancestors.
    """

    def __init__(self) -> None:
        self.code: list[NativeInstruction] = []
        self.num_words = 0
        self.num_objects = 0
        self.constants: dict[int | Address, int] = {}
        self.scopes = [Scope()]

    def emit(self, op: Op, *operands: Operand) -> None:
        """Append an instruction."""
        self.code.append(NativeInstruction(op, operands))

    def new_word(self) -> int:
        """An unused word of the frame."""
        self.num_words += 1
        return self.num_words - 1

    def new_object(self) -> int:
        """A new object, as a negative number until all words are counted."""
        self.num_objects += 1
        return -self.num_objects

    def numbered(self, instruction: NativeInstruction) -> NativeInstruction:
        """`instruction`, with objects numbered after the words of the frame."""

        def numbered(kind: str, operand: Operand) -> Operand:
            if kind in ("to", "from") and isinstance(operand, int) and operand < 0:
                return self.num_words - 1 - operand
            return operand

        kinds = operand_kinds(instruction)
        return NativeInstruction(instruction.op, tuple(map(numbered, kinds, instruction.operands)))

    def constant(self, value: int | Address) -> int:
        """The word that holds `value` in all calls."""
        if value not in self.constants:
            self.constants[value] = self.new_word()
        return self.constants[value]

    def word(self, number: Number) -> int:
        """The word of `number`; emits its computation at first use."""
        if isinstance(number, int):
            return self.constant(number)
        for scope in self.scopes:
            if number in scope.words:
                return scope.words[number]
        if number.kind == "carried":
            self.scopes[-1].words[number] = self.new_word()
            return self.num_words - 1
        word = self.scopes[0].words[number] = self._computed(number)
        return word

    def at(self, base: int, offset: Number) -> int:
        """The word with the address in `base` plus `offset`."""
        if offset == 0:
            return base
        for scope in self.scopes:
            if (base, offset) in scope.addresses:
                return scope.addresses[base, offset]
        by = self.word(offset)
        word = self.scopes[0].addresses[base, offset] = self.new_word()
        self.emit(Op.ADD, word, base, by)
        return word

    def _computed(self, number: Computed) -> int:
        match number.kind, number.operands:
            case "item", (int(argument), int(index)):
                word = self.new_word()
                self.emit(Op.ITEM, word, argument, index)
            case "product", (int(coefficient), *factors):
                word = self._product(coefficient, factors)
            case kind, operands:
                words = [self.word(operand) for operand in operands]
                word = self.new_word()
                self.emit(_ARITHMETIC[kind], word, *words)
        return word

    def _product(self, coefficient: int, factors: Sequence[Number]) -> int:
        words = [self.word(factor) for factor in factors]
        if coefficient != 1:
            words.append(self.constant(coefficient))
        product = words[0]
        for factor in words[1:]:
            word = self.new_word()
            self.emit(Op.MULTIPLY, word, product, factor)
            product = word
        return product
