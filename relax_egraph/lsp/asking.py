"""Questions that run in a worker process, one at a time; what is asked of an old text is ended."""

import asyncio
from concurrent.futures import CancelledError
from functools import partial
from importlib import import_module

from relax_egraph.authoring.questions import Answer, Question, answer
from relax_egraph.workers.pool import Pool
from relax_egraph.workers.process import Death, Limits

_SECONDS, _MEMORY = 120.0, 4 << 30
"""The most time, and memory in bytes, of one question."""


def _begin() -> None:
    """Import what questions need, before their time begins."""
    import_module("relax_egraph.authoring.questions")


def _asked(question: Question, pool: Pool) -> Answer | None:
    """The answer of a worker of `pool`, or ``None`` if that is closed."""
    try:
        found = pool.run(partial(answer, question), Limits(_SECONDS, _MEMORY))
    except CancelledError:
        return None
    if isinstance(found, Death):
        return Answer("no answer", f"{question.rule}: its {question.kind} {found}")
    return found


class Asking:
    """The questions of one server; the answers are kept until their text changes."""

    def __init__(self) -> None:
        self.answers: dict[Question, Answer] = {}
        self._pool = Pool(1, _begin)
        self._turn = asyncio.Lock()
        self._asked: Question | None = None

    async def ask(self, question: Question) -> Answer | None:
        """The answer, or ``None`` if the text changed before there was one."""
        if question in self.answers:
            return self.answers[question]
        async with self._turn:
            self._asked = question
            found = await asyncio.to_thread(_asked, question, self._pool)
            self._asked = None
        if found is not None:
            self.answers[question] = found
        return found

    def forget(self, file: str, texts: frozenset[str] = frozenset()) -> None:
        """Drop the answers on a file, and end what is asked of it, except on its `texts`."""
        old = [q for q in self.answers if q.file == file and q.text not in texts]
        for question in old:
            del self.answers[question]
        asked = self._asked
        if asked and asked.file == file and asked.text not in texts:
            self.close()
            self._pool = Pool(1, _begin)

    def close(self) -> None:
        """End the worker."""
        self._pool.close()
