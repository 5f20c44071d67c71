"""The diagnostics of each of 200 edits are those of the loader for the whole text."""

import asyncio
from pathlib import Path

from relax_egraph import rules
from relax_egraph.errors import RuleError
from tests.support.editor import editing
from tests.support.session import BEGIN, EDITS, session


def said(path: Path, text: str) -> list[str]:
    """What the loader says of a text: the lines of errors, and the first line of each message."""
    try:
        rules.load(rules.Rules(((str(path), text),)))
    except RuleError as error:
        errors = (error.with_others(()), *error.others)
        return [f"{e.span.line}: {e.message.splitlines()[0]}" for e in errors]
    return []


def test_each_edit_has_the_errors_of_its_text(tmp_path: Path) -> None:
    path = tmp_path / "my.egg"
    wrong: list[str] = []

    async def run() -> int:
        async with editing(path) as editor:
            assert await editor.open(BEGIN) == []
            count = 0
            for (start, end, new), text in session():
                editor.type(start, end, new)
                shown = [_without_mark(line) for line in await editor.diagnostics()]
                expected = said(path, text)
                wrong.extend([text, *shown, *expected] if shown != expected else [])
                count += 1
            return count

    assert asyncio.run(run()) == EDITS
    assert wrong == []


def _without_mark(line: str) -> str:
    number, _, rest = line.partition(": ")
    return f"{number}: {rest.partition(': ')[2]}"
