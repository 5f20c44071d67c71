"""Parts of generated pages."""

from collections.abc import Iterable


def prose(text: str) -> str:
    """A text of this project, with double backticks around code, in a cell or a paragraph."""
    return text.replace("``", "`").replace("|", "\\|")


def fenced(text: str, language: str) -> str:
    """A block of code."""
    return f"```{language}\n{text.strip()}\n```"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table."""
    titles = list(head)
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
