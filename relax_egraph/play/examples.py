"""The worked examples: files with rules, each beside a program."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "examples"


@dataclass(frozen=True, slots=True)
class Example:
    """A program and rules; `title` and `text` are the comment that the rules begin with."""

    name: str
    title: str
    text: str
    program: str
    rules: str


@cache
def examples() -> tuple[Example, ...]:
    """The examples, from the simplest on."""
    return tuple(map(_read, sorted(_FOLDER.glob("*.egg"))))


def _read(path: Path) -> Example:
    head, _, rules = path.read_text("utf-8").partition("\n\n")
    title, *text = (line.removeprefix("; ") for line in head.splitlines())
    program = path.with_suffix(".relax").read_text("utf-8")
    return Example(path.stem, title, " ".join(text), program, rules)
