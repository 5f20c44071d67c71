"""The call stack of the machine, and the note with it on an exception."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from relax_egraph.vm.executable import Executable, VMFunction
from relax_egraph.vm.printing import instruction_at, instruction_text, origin, with_comment

SHOWN = 10
"""The calls shown at each end of a deep stack."""

moments = count()
"""A counter of events, to order them in time."""


@dataclass(frozen=True, slots=True)
class Place:
    """The current instruction `at` of an active function.

    With `tail_calls`, the place before called another function, and so many tail calls led to this
    one.
    """

    executable: Executable
    function: VMFunction
    at: int
    tail_calls: int = 0

    @property
    def text(self) -> str:
        """The instruction, as in listings."""
        instruction = instruction_at(self.executable, self.function, self.at)
        return instruction_text(self.executable, instruction, self.at)

    @property
    def origin(self) -> str:
        """The name in the source of the value that the instruction computes, or empty."""
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
    """The note on an exception with the stack `places`, created at the event `moment`."""

    places: tuple[Place, ...]
    moment: int

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Copy and pickle as the text alone."""
        return str, (str(self),)


def note_stack(error: BaseException, places: Sequence[Place], started: int) -> None:
    """Add a note to `error` with the stack `places` of a run, innermost last.

    If a nested run, which began after the event `started`, has added a note, its places follow.
    An exception has one such note, of its last raise.
    """
    notes: list[str] = getattr(error, "__notes__", [])
    inner = next((n for n in notes if isinstance(n, StackNote)), None)
    if inner is not None:
        notes.remove(inner)
        if inner.moment > started:
            places = (*places, *inner.places)
    note = StackNote(f"virtual machine stack, innermost last:\n{stack_text(places)}")
    note.places, note.moment = tuple(places), next(moments)
    error.add_note(note)


def stack_text(places: Sequence[Place]) -> str:
    """One line for each place; for a deep stack, only the outermost and innermost."""
    hidden = len(places) - 2 * SHOWN
    if hidden <= 1:
        return "\n".join(f"  {place}" for place in places)
    ends = stack_text(places[:SHOWN]), stack_text(places[-SHOWN:])
    return f"\n  … {_number(hidden)} more\n".join(ends)


def _number(value: int) -> str:
    return f"{value:,}".replace(",", " ")
