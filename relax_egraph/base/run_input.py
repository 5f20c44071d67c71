"""The input of a run with a journal: a journal of other input is refused.

Answers of other input would not be taken in any case, as questions have all that answers depend on.
But a run that is to go on, and begins anew in silence, takes hours to show it.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from relax_egraph.base.journal import Journal

VERSIONS = "versions of relax-egraph or its libraries"
"""The name of the part of an input that changes with an upgrade."""


@dataclass(frozen=True, slots=True)
class RunInput:
    """The input of a run of some `kind`: `parts` that all answers depend on, and its `tasks`.

    Parts are JSON, by what they are in words; a journal is of other input if one of them differs,
    or if it has none of the tasks, which are `nouns`.  It may have others, and get more of them.
    """

    kind: str
    parts: Mapping[str, Any]
    nouns: str = ""
    tasks: Collection[str] = ()

    def require_in(self, journal: Journal | None) -> None:
        """Raise ``ValueError`` if `journal` is of other input; otherwise it is of this one."""
        if journal is None:
            return
        question = ["input", self.kind]
        digests = {name: _digest(part) for name, part in self.parts.items()}
        known: dict[str, Any] = journal.get(question) or {"parts": digests, "tasks": []}
        differing = [name for name in digests if known["parts"].get(name) != digests[name]]
        shared = set(known["tasks"]).intersection(self.tasks)
        if known["tasks"] and self.tasks and not shared:
            differing.append(self.nouns)
        if differing:
            raise ValueError(
                f"{journal.file or 'the journal'} is of other {differing[0]} than this run; "
                "give each run a journal of its own"
            )
        if len(shared) < len(set(self.tasks)) or journal.get(question) is None:
            tasks = sorted({*known["tasks"], *self.tasks})
            journal.put(question, {"parts": digests, "tasks": tasks})


def _digest(part: object) -> str:
    return sha256(json.dumps(part).encode()).hexdigest()[:32]
