"""What notebooks show in place of a ``repr``: code, text and tables as HTML.

Colours are of middle lightness, so that they can be read on light and on dark pages; all else has
the colours of the page.
"""

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

_TONES = {
    "Keyword": "#9a6bd6",
    "Name.Decorator": "#9a6bd6",
    "Name.Function": "#3f83e0",
    "Literal.String": "#3a8f4f",
    "Literal.Number": "#b8701c",
    "Comment": "#808892",
}
"""Colours by kinds of tokens of pygments."""

_PRE = "margin:0;background:none;line-height:1.35;white-space:pre;overflow:auto;max-height:40rem"

_LOOKS = {"good": "#2f8f46", "bad": "#d0453a", "open": "#a06f10"}
"""Colours of verdicts."""


def code(program: str, language: str = "python") -> str:
    """A program, highlighted."""
    from pygments import lex
    from pygments.lexers import get_lexer_by_name
    from pygments.token import string_to_tokentype

    tones = [(string_to_tokentype(kind), tone) for kind, tone in _TONES.items()]
    parts: list[str] = []
    for token, value in lex(program, get_lexer_by_name(language)):
        tone = next((tone for kind, tone in tones if token in kind), None)
        said = escape(value)
        parts.append(f'<span style="color:{tone}">{said}</span>' if tone else said)
    return f'<pre style="{_PRE}">{"".join(parts).rstrip()}</pre>'


def text(said: str) -> str:
    """Text as it is."""
    return f'<pre style="{_PRE}">{escape(said)}</pre>'


def verdict(kind: str, said: str, look: str) -> str:
    """A coloured label before what is `said`, whose further lines are below."""
    first, *rest = said.splitlines()
    tone = _LOOKS[look]
    style = f"border:1px solid {tone};color:{tone};border-radius:4px;padding:0 .4em"
    head = f'<div><span style="{style}">{escape(kind)}</span> {escape(first)}</div>'
    return head + (text("\n".join(rest)) if rest else "")


def table(table: "Table") -> str:
    """A table of rich."""
    caption = f"<caption>{_plain(table.title)}</caption>" if table.title else ""
    align = [f' style="text-align:{column.justify}"' for column in table.columns]
    heads = "".join(
        f"<th{a}>{_plain(c.header)}</th>" for a, c in zip(align, table.columns, strict=True)
    )
    head = f"<thead><tr>{heads}</tr></thead>" if table.show_header else ""
    rows = zip(*(list(column.cells) for column in table.columns), strict=True)
    lines = (
        "".join(f"<td{a}>{_plain(cell)}</td>" for a, cell in zip(align, row, strict=True))
        for row in rows
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>"


def _plain(cell: object) -> str:
    """The text of a cell without rich's markup."""
    from rich.text import Text

    text: Text = cell if isinstance(cell, Text) else Text.from_markup(str(cell))
    return escape(text.plain).replace("\n", "<br>")
