"""The journal of a run: answers to expensive questions, one line of JSON each.

A run that is stopped and started again reads the answers that it has, so that it goes on where it
was stopped.  A question has all that its answer depends on: a journal of another run, or of other
sources, has no answer to it.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, TypeVar
from weakref import finalize

from relax_egraph.errors import RelaxEgraphError

if sys.platform != "win32":
    import fcntl

A = TypeVar("A")

_START = b'{"question": "'
"""How a line begins, or the part of it that a run wrote before it was killed."""


@dataclass(slots=True, weakref_slot=True)
class Journal:
    """Answers by question, kept in a file if there is one; lines are only appended.

    Several threads may use it; no other process, until it is freed.  Raises `RelaxEgraphError` if
    another process uses it, and ``ValueError`` for a file that is no journal, which stays as it is.
    """

    file: Path | None = None
    answers: dict[str, Any] = field(default_factory=dict[str, Any])
    _stream: BinaryIO | None = None
    _writing: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        if self.file is None:
            return
        stream = self.file.open("a+b")
        try:
            _reserve(stream, self.file)
            stream.seek(0)
            whole = stream.read()
            kept = whole[: whole.rfind(b"\n") + 1]
            self.answers |= _answers(kept, self.file)
            if len(kept) < len(whole):  # a run was killed while it wrote the rest
                rest = whole[len(kept) :]
                if not (rest.startswith(_START) or _START.startswith(rest)):
                    raise _no_line(self.file, kept.count(b"\n") + 1)
                stream.truncate(len(kept))
        except BaseException:
            stream.close()
            raise
        finalize(self, stream.close)
        self._stream = stream

    def get(self, question: object) -> Any:
        """The known answer to `question`, which must be JSON, or ``None``."""
        return self.answers.get(key_of(question))

    def put(self, question: object, answer: object) -> None:
        """Keep the `answer` to `question`, both JSON: a kill of the process does not lose it."""
        key = key_of(question)
        line = json.dumps({"question": key, "answer": answer}) + "\n"
        with self._writing:
            self.answers[key] = answer
            if self._stream is not None:
                self._stream.write(line.encode())
                self._stream.flush()

    def ask(self, question: object, answer: Callable[[], A | None]) -> A | None:
        """The answer to `question`, which must be JSON: a known one, or that of `answer`.

        ``None`` is no answer, and is asked again by the next run.
        """
        if (known := self.get(question)) is not None:
            return known
        found = answer()
        if found is not None:
            self.put(question, found)
        return found


def key_of(question: object) -> str:
    """What stands for `question`, which must be JSON."""
    return sha256(json.dumps(question).encode()).hexdigest()[:32]


def _answers(lines: bytes, file: Path) -> dict[str, Any]:
    """The answers in whole `lines`."""
    answers: dict[str, Any] = {}
    for number, line in enumerate(lines.split(b"\n")[:-1], 1):
        try:
            entry = json.loads(line)
            answers[entry["question"]] = entry["answer"]
        except (ValueError, TypeError, KeyError):
            raise _no_line(file, number) from None
    return answers


def _no_line(file: Path, number: int) -> ValueError:
    return ValueError(f"{file}:{number} is no line of a journal")


def _reserve(stream: BinaryIO, file: Path) -> None:
    """Reserve the file for this process, until it ends; a kill ends it, too."""
    if sys.platform == "win32":
        return
    try:
        # Forks do not inherit such a lock, so that none of them outlives its process with it.
        fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        raise RelaxEgraphError(
            f"{file}: another process is writing to this journal; wait for it to end, or give each "
            "run a journal of its own"
        ) from None
    except OSError:
        pass  # the file system has no locks
