"""Parts of generated pages."""

import re
from collections.abc import Iterable


def prose(text: str) -> str:
    """A text of this project, with double backticks around code, in a cell or a paragraph."""
    parts = text.replace("``", "`").split("`")
    parts[::2] = [re.sub(r"([\[\]<>|*_~])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def fenced(text: str, language: str) -> str:
    """A block of code."""
    return f"```{language}\n{text.strip()}\n```"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table."""
    titles = list(head)
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
