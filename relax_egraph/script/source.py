"""The text of a script and its syntax tree, and errors that point into the original text."""

import ast
import gc
import re
import textwrap

from relax_egraph.errors import ScriptError, Span, nearest
from relax_egraph.ir.syntax import parsed
from relax_egraph.script.spellings import KEYWORDS, today

_TAB_WIDTHS = (4, 8)
"""The widths of tabs to try where tabs and spaces are mixed; the first that parses is used."""


class Source:
    """A text, its name, and its indentation as a whole.

    Syntax nodes belong to the dedented text; `span` and `error` refer to the original one.
    Raises `ScriptError` where the text is no Python.
    """

    def __init__(self, text: str, filename: str) -> None:
        self.filename = filename
        self._read(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))

    def _read(self, text: str) -> None:
        self.lines = text.split("\n")
        dedented = textwrap.dedent(text)
        self._dedented = dedented.split("\n")
        self._margin = next(
            (
                len(whole) - len(cut)
                for whole, cut in zip(self.lines, self._dedented, strict=True)
                if cut.strip()
            ),
            0,
        )
        try:
            self.tree = self._parse(dedented)
        except TabError:
            spaced = [_spaced(text, width) for width in _TAB_WIDTHS]
            self._read(next(filter(_is_python, spaced), spaced[0]))

    def span(self, node: ast.AST) -> Span:
        """The span of `node`."""
        line: int = getattr(node, "lineno", 1)
        column: int = getattr(node, "col_offset", 0)
        return Span(self.filename, line, self._characters(line, column) + self._margin + 1)

    def error(self, node: ast.AST, message: str, note: str = "") -> ScriptError:
        """An error at the beginning of `node`, to be raised."""
        return self._error(self.span(node), message, note)

    def written(self, node: ast.expr) -> str | None:
        """The text of `node` if it stands on one line."""
        if node.lineno != node.end_lineno:
            return None
        line = self._dedented[node.lineno - 1]
        if line.isascii():
            return line[node.col_offset : node.end_col_offset]
        return line.encode()[node.col_offset : node.end_col_offset].decode()

    def _parse(self, text: str) -> ast.Module:
        collects = gc.isenabled()
        gc.disable()  # collection takes half of the time of a long text
        try:
            return parsed(text)
        except TabError:
            raise
        except SyntaxError as problem:
            line = min(max(problem.lineno or 1, 1), len(self.lines))
            column = max(problem.offset or 1, 1) + self._margin
            raise self._error(Span(self.filename, line, column), problem.msg) from None
        except (ValueError, RecursionError, MemoryError) as problem:
            reason = (
                str(problem)
                if isinstance(problem, ValueError)
                else "an expression is nested too deeply"
            )
            raise self._error(Span(self.filename, 1, 1), reason) from None
        finally:
            if collects:
                gc.enable()

    def _error(self, span: Span, message: str, note: str = "") -> ScriptError:
        return ScriptError(span, message, self.lines[span.line - 1], note)

    def _characters(self, line: int, column: int) -> int:
        written = self._dedented[line - 1]
        return column if written.isascii() else len(written.encode()[:column].decode())


def dotted(node: ast.expr) -> str:
    """``R.nn.relu`` for the attribute chain, in today's spelling; empty for anything else."""
    return today(_chain(node))


def _chain(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = _chain(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""


def _is_python(text: str) -> bool:
    try:
        parsed(textwrap.dedent(text))
    except (SyntaxError, ValueError):
        return False
    return True


def _spaced(text: str, width: int) -> str:
    """`text` with spaces for the tabs that lines begin with: Python refuses a mixture."""
    return re.sub(r"(?m)^[ \t]+", lambda match: match[0].replace("\t", " " * width), text)


def arguments(source: Source, node: ast.Call, names: tuple[str, ...]) -> dict[str, ast.expr]:
    """The arguments of a call by the names of its parameters; raises on one too many or unknown."""
    callee = dotted(node.func)
    if len(node.args) > len(names):
        takes = ", ".join(names) or "nothing"
        raise source.error(node.args[len(names)], f"{callee} takes {takes}; this is one too many")
    by_name = dict(zip(names, node.args, strict=False))
    for keyword in node.keywords:
        name = keyword.arg or "**"
        if name not in names:
            name = KEYWORDS.get(name, name)
        if name not in names:
            takes = ", ".join(names) or "none"
            message = f"{callee} has no argument {name!r}; it has: {takes}"
            raise source.error(keyword, message, nearest(name, names))
        if name in by_name:
            raise source.error(keyword, f"{callee} got the argument {name!r} twice")
        by_name[name] = keyword.value
    return by_name
