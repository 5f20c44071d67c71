"""The examples in Markdown pages: blocks that are run as they stand, one after another.

    ```python              runs in the namespace of the page
    ```text title="prints" what the blocks before it have printed
    ```egg title="my.egg"  is written to a file, as is any block with a title
    ```console             lines "$ command", each with the output that is expected
    ```shell               is shown, and not run

In an expected output ``...`` stands for any text within a line, and alone for any lines.  A comment
``<!-- needs: torch -->`` above a block names packages without which it, and what follows it on the
page, is skipped; ``<!-- not run: reason -->`` leaves one out; ``<!-- run: … -->`` is run unseen.
"""

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from relax_egraph.cli import commands

_BLOCK = re.compile(
    r"^<!-- run:\n(?P<unseen>.*?)^-->$"
    r"|(?:^<!-- (?P<mark>needs|not run): (?P<why>[^\n]*) -->\n)?"
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_COMMAND = re.compile(r"^\$ (?P<line>[^\n]*)\n(?P<output>(?:(?!\$ )[^\n]*\n)*)", re.MULTILINE)
_PRINTED = "prints"
_WIDTH = "100"


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page: its language, the title behind it, its text, and where the text begins."""

    language: str
    title: str
    text: str
    start: int
    mark: str = ""
    why: str = ""

    @property
    def is_file(self) -> bool:
        """Whether it is written to a file."""
        return bool(self.title) and self.title != _PRINTED

    @property
    def is_example(self) -> bool:
        """Whether something is run or compared."""
        shown = self.mark == "not run" or self.language in ("shell", "toml", "lua")
        return not shown and (self.is_file or self.language in ("python", "console", "text"))


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page, in order."""
    for match in _BLOCK.finditer(page):
        if match["unseen"] is not None:
            yield Block("python", "", match["unseen"], match.start("unseen"))
        else:
            yield Block(
                match["language"],
                match["title"] or "",
                match["text"],
                match.start("text"),
                match["mark"] or "",
                match["why"] or "",
            )


@dataclass(frozen=True, slots=True)
class Output:
    """What a page expects at `start`, and what was printed."""

    start: int
    expected: str
    actual: str

    @property
    def agrees(self) -> bool:
        """Whether the actual output is the expected one, but for blanks at the ends of lines."""
        pattern = ""
        for line in _lines(self.expected):
            if line.strip() == "...":
                pattern += r"(?:[^\n]*\n)*"
            else:
                pattern += r"[^\n]*".join(map(re.escape, line.split("..."))) + r"\n"
        return re.fullmatch(pattern, _joined(self.actual)) is not None


def corrected(page: str, outputs: Iterable[Output]) -> str:
    """The page with the actual outputs in place of those expected."""
    for output in sorted(outputs, key=lambda o: -o.start):
        end = output.start + len(output.expected)
        page = page[: output.start] + _joined(output.actual) + page[end:]
    return page


def _joined(text: str) -> str:
    return "".join(f"{line}\n" for line in _lines(text))


@dataclass(slots=True)
class Session:
    """The state of a page while its blocks run: the names, and what was printed and not compared.

    With `processes`, each command is a process of its own; else the command line runs in this one.
    """

    processes: bool = False
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__page__"})
    printed: str = ""

    def outputs(self, block: Block) -> Iterator[Output]:
        """Run a block; the expected and the actual output of each part of it."""
        if not block.is_example:
            return
        if block.is_file:
            Path(block.title).write_text(block.text, "utf-8")
        elif block.language == "python":
            with redirect_stdout(io.StringIO()) as out:
                exec(compile(block.text, "<page>", "exec", dont_inherit=True), self.names)
            self.printed += out.getvalue()
        elif block.language == "text" and block.title == _PRINTED:
            yield Output(block.start, block.text, self.printed)
            self.printed = ""
        elif block.language == "console":
            for command in _COMMAND.finditer(block.text):
                start = block.start + command.start("output")
                yield Output(start, command["output"], self._output(command["line"]))

    def _output(self, command: str) -> str:
        words = shlex.split(command)
        environment = {"COLUMNS": _WIDTH, "PYTHONPATH": str(Path(__file__).parents[2])}
        if words[0] == "relax-egraph" and not self.processes:
            result = CliRunner().invoke(
                commands, words[1:], env=environment, prog_name="relax-egraph"
            )
            unexplained = result.exception
            if unexplained and not isinstance(unexplained, SystemExit):
                raise unexplained
            return result.output
        program = {"relax-egraph": ["-m", "relax_egraph"], "python": []}[words[0]]
        done = subprocess.run(
            [sys.executable, *program, *words[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **environment},
        )
        return done.stdout


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def missing(block: Block) -> list[str]:
    """The packages that a block needs and that are not there."""
    return [n for n in block.why.split() if block.mark == "needs" and find_spec(n) is None]
