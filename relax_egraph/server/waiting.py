"""Calls that wait to be joined, and which are to run next."""

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Waiting(Generic[T]):
    """A call that waits since `since`: calls of one `kind` may be joined, ``None`` with none."""

    call: T
    kind: Hashable | None
    rows: int
    since: float


@dataclass(slots=True)
class _Group(Generic[T]):
    calls: deque[Waiting[T]] = field(default_factory=deque[Waiting[T]])
    rows: int = 0


class WaitingCalls(Generic[T]):
    """Calls by their kind, oldest first; at most `most_rows` are joined.

    A call waits at most `max_wait` seconds for others, and no longer than until `most_rows` rows of
    its kind are there.  A call of more rows runs alone, as does one of no kind, at once.
    """

    def __init__(self, most_rows: int, max_wait: float) -> None:
        self.most_rows = most_rows
        self.max_wait = max_wait
        self._groups = dict[Hashable, _Group[T]]()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, waiting: Waiting[T]) -> None:
        """Have a call wait."""
        key = object() if waiting.kind is None else waiting.kind
        group = self._groups.setdefault(key, _Group())
        group.calls.append(waiting)
        group.rows += waiting.rows
        self._count += 1

    def seconds_left(self, now: float) -> float:
        """How long no call needs to run: 0 if one is due; there has to be a call."""
        return max(0.0, min(map(self._due, self._groups.values())) - now)

    def take(self) -> Sequence[Waiting[T]]:
        """Remove the calls that run next, together: of those due first, as many as fit."""
        key = min(self._groups, key=lambda key: self._due(self._groups[key]))
        group = self._groups[key]
        taken, rows = list[Waiting[T]](), 0
        while group.calls and (not taken or rows + group.calls[0].rows <= self.most_rows):
            taken.append(group.calls.popleft())
            rows += taken[-1].rows
        group.rows -= rows
        self._count -= len(taken)
        if not group.calls:
            del self._groups[key]
        return taken

    def _due(self, group: _Group[T]) -> float:
        """When the first call of `group` is to run; one that waits for nothing was due already."""
        first = group.calls[0]
        alone = first.kind is None or group.rows >= self.most_rows
        return first.since + (0.0 if alone else self.max_wait)
