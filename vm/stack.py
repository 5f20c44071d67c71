"""Where calls are: the stack of the machine, and the note about it on an exception."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from relax_egraph.vm.executable import Executable, VMFunction
from relax_egraph.vm.printing import instruction_at, instruction_text, origin, with_comment

SHOWN = 10
"""Calls shown at each end of a stack; those between are counted."""

moments = count()
"""Numbers for moments, to tell what came first."""


@dataclass(frozen=True, slots=True)
class Place:
    """Instruction `at` of a function that has been called and has not returned.

    With `tail_calls` the callee of the place before was another function: this one was called at
    last, each time in the place of its caller.
    """

    executable: Executable
    function: VMFunction
    at: int
    tail_calls: int = 0

    @property
    def text(self) -> str:
        """The instruction, as listings show it."""
        instruction = instruction_at(self.executable, self.function, self.at)
        return instruction_text(self.executable, instruction, self.at)

    @property
    def origin(self) -> str:
        """What the source calls the value that the instruction computes, or nothing."""
        return origin(self.executable, self.function, self.at)

    def __str__(self) -> str:
        match self.tail_calls:
            case 0:
                calls = ""
            case 1:
                calls = " (tail call)"
            case many:
                calls = f" ({_number(many)} tail calls)"
        text = with_comment(self.text, self.origin)
        return f"{self.function.name}{calls}, instruction {self.at}: {text}"


class StackNote(str):
    """The note on an exception that has come through `places`, at the moment `made`."""

    places: tuple[Place, ...]
    made: int

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Copied and pickled as the text alone."""
        return str, (str(self),)


def note_stack(error: BaseException, places: Sequence[Place], started: int) -> None:
    """Let `error` say where it comes from: `places`, innermost last, of a run.

    Of a run within this one, from the moment `started` on, the note is there: its places follow.
    An exception has one such note, of the last time it was raised.
    """
    notes: list[str] = getattr(error, "__notes__", [])
    inner = next((n for n in notes if isinstance(n, StackNote)), None)
    if inner is not None:
        notes.remove(inner)
        if inner.made > started:
            places = (*places, *inner.places)
    note = StackNote(f"virtual machine stack, innermost last:\n{stack_text(places)}")
    note.places, note.made = tuple(places), next(moments)
    error.add_note(note)


def stack_text(places: Sequence[Place]) -> str:
    """One line for each place; of a deep stack the first and the last."""
    hidden = len(places) - 2 * SHOWN
    if hidden <= 1:
        return "\n".join(f"  {place}" for place in places)
    ends = stack_text(places[:SHOWN]), stack_text(places[-SHOWN:])
    return f"\n  … {_number(hidden)} more\n".join(ends)


def _number(value: int) -> str:
    return f"{value:,}".replace(",", " ")
