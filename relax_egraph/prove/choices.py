"""Exhaustive choices: a function runs again for every combination of choices that it makes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Impossible(Exception):
    """The choices made so far contradict each other."""


class Choices:
    """The choices of one run, by label: those of `made`, and the first option of each other one.

    `open` are the labels that this run chose first, each with the places of its other options.
    What follows from the choices so far may be noted as `known`: runs that differ in later choices
    begin with it.  Nothing is chosen any more once the choices are `contradictory`.
    """

    def __init__(self, made: Mapping[str, int], known: Any = None) -> None:
        self.made = dict(made)
        self.open: list[tuple[str, Sequence[int]]] = []
        self.known = known
        self.notes: list[tuple[int, Any]] = [(0, known)]
        self.contradictory: Callable[[], bool] = lambda: False

    def note(self, known: Any) -> None:
        """Note what follows from the choices so far."""
        self.known = known
        self.notes.append((len(self.open), known))

    def of(
        self, label: str, options: Sequence[T], possible: Callable[[T], bool] = lambda _: True
    ) -> T:
        """One of the `options` that are `possible`; raises `Impossible` if there is none."""
        if label not in self.made:
            places = [k for k, option in enumerate(options) if possible(option)]
            if not places or self.contradictory():
                raise Impossible
            self.made[label], *others = places
            self.open.append((label, others))
        return options[self.made[label]]


class Questions(Choices):
    """The choices of one term, by their order: extents that were solved for have another text.

    A term asks the same questions of extents that are solved as before, or the answers would be to
    other questions.
    """

    def __init__(self, choices: Choices, term: str) -> None:
        super().__init__({})
        self.choices = choices
        self.term = term
        self.count = 0

    def of(
        self, label: str, options: Sequence[T], possible: Callable[[T], bool] = lambda _: True
    ) -> T:
        """One of the `options` that are `possible`; the `label` is for readers."""
        self.count += 1
        return self.choices.of(f"{self.term} {self.count}", options, possible)


def runs(function: Callable[[Choices], R]) -> Iterator[R | None]:
    """The results of `function` for all combinations of choices; ``None`` of impossible ones.

    The function makes the same choices when the choices before are the same.
    """
    todo: list[tuple[dict[str, int], Any]] = [({}, None)]
    while todo:
        before, known = todo.pop()
        choices = Choices(before, known)
        try:
            yield function(choices)
        except Impossible:
            yield None
        for place, (label, others) in enumerate(choices.open):
            known = next(k for at, k in reversed(choices.notes) if at <= place)
            todo += [({**before, label: other}, known) for other in others]
            before = {**before, label: choices.made[label]}
