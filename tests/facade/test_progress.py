"""Long work is shown while it goes on, where somebody watches: a terminal, a notebook."""

import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from io import StringIO
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import relax_egraph as rx
from relax_egraph.base.progress import counted, step
from tests.support.sound_rules import NEGATIVES

SILU = rx.parse("""
@R.function
def main(x: R.Tensor(("n", 64), "float32")):
    with R.dataflow():
        y = R.multiply(x, R.sigmoid(x))
        R.output(y)
    return y
""")


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def standard_error(stream: StringIO) -> Generator[Callable[[], str]]:
    """Have `stream` be standard error; yields what was written, without codes of the terminal.

    A fixture cannot do it: pytest captures standard error anew when the test itself begins.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "stderr", stream)
        patched.setenv("TERM", "xterm")
        patched.setenv("FORCE_COLOR", "1")
        yield lambda: re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())


def test_what_is_being_done_is_shown_on_a_terminal() -> None:
    with standard_error(Terminal()) as written, step("importing model.onnx"):
        pass

    assert "importing model.onnx" in written()


def test_what_is_being_done_changes_on_a_terminal() -> None:
    with standard_error(Terminal()) as written, step("importing model.onnx") as tell:
        tell("converting 12 nodes")

    assert "converting 12 nodes" in written()


def test_nothing_is_written_to_a_file() -> None:
    with (
        standard_error(StringIO()) as written,
        step("importing model.onnx") as tell,
        counted("checking rules", 2) as done,
    ):
        tell("converting 12 nodes")
        done(1)

    assert written() == ""


def test_work_within_work_does_not_disturb_what_is_shown() -> None:
    with standard_error(Terminal()) as written, counted("checking rules", 2) as done:
        with step("optimizing"):
            done(1)
        done(2)

    assert "checking rules" in written()
    assert "2/2" in written()
    assert "optimizing" not in written()


def test_checks_are_counted_on_a_terminal() -> None:
    with standard_error(Terminal()) as written:
        verdicts = rx.rules.check(NEGATIVES, processes=1)

    assert [v.sound for v in verdicts] == [True, True]
    assert re.search(r"checking rules .*2/2", written())


def test_searches_among_rules_tell_their_tries() -> None:
    with standard_error(Terminal()) as written:
        (gain,) = rx.gains(SILU, only=["silu-from-sigmoid"])

    assert gain.rule.name == "silu-from-sigmoid"
    assert re.search(r"leaving out rules: try \d+, \d+ rules", written())


def test_a_callback_takes_the_place_of_what_is_shown() -> None:
    heard: list[Any] = []

    with standard_error(Terminal()) as written:
        verdicts = rx.rules.check(NEGATIVES, processes=1, progress=heard.append)

    assert sorted(map(str, heard)) == sorted(map(str, verdicts))
    assert written() == ""


class Watched(NotebookClient):
    """A client that remembers what cells showed, in order."""

    seen: list[str]

    def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
        if msg["msg_type"] in ("display_data", "update_display_data"):
            self.seen.append(re.sub(r", \d+ s$", "", msg["content"]["data"]["text/html"]))
        return super().process_message(msg, cell, cell_index)


def test_a_notebook_shows_a_bar_below_the_cell_until_the_work_is_done() -> None:
    cells = [
        "from time import sleep\nfrom relax_egraph.base.progress import counted",
        "with counted('checking rules', 3) as done:\n"
        "    for rule in range(3):\n"
        "        sleep(0.6)\n"
        "        done(rule)",
        "with counted('short work', 3) as done:\n    done(1)",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = Watched(book, timeout=120)
    client.seen = list[str]()

    client.execute()

    assert client.seen == [
        '<progress value="1" max="3"></progress> checking rules: 1 of 3',
        '<progress value="2" max="3"></progress> checking rules: 2 of 3',
        "",
    ]
