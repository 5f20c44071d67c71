"""The journal of a run: answers to expensive questions, one line of JSON each.

A run asks the same questions in the same order each time.  One that is stopped and started again
reads the answers that it has, so that it goes on where it was stopped and finds the same rules.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

A = TypeVar("A")


@dataclass(slots=True)
class Journal:
    """Answers by question, kept in a file if there is one; lines are only appended."""

    file: Path | None = None
    answers: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if self.file is None or not self.file.exists():
            return
        whole = self.file.read_bytes()
        kept = whole[: whole.rfind(b"\n") + 1]  # a run was killed while it wrote the rest
        for number, line in enumerate(kept.decode("utf-8").splitlines(), 1):
            try:
                entry = json.loads(line)
                self.answers[entry["question"]] = entry["answer"]
            except (ValueError, TypeError, KeyError):
                raise ValueError(f"{self.file}:{number} is no line of a journal") from None
        if len(kept) < len(whole):
            with self.file.open("r+b") as file:
                file.truncate(len(kept))

    def ask(self, question: object, answer: Callable[[], A | None]) -> A | None:
        """The answer to `question`, which must be JSON: a known one, or that of `answer`.

        ``None`` is no answer, and is asked again by the next run.
        """
        key = sha256(json.dumps(question).encode()).hexdigest()[:32]
        if key in self.answers:
            return self.answers[key]
        found = answer()
        if found is not None:
            self.answers[key] = found
            if self.file is not None:
                with self.file.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"question": key, "answer": found}) + "\n")
        return found
