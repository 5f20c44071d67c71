"""Journals keep answers over kills, and belong to one process at a time."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relax_egraph.base.journal import Journal
from relax_egraph.errors import RelaxEgraphError

ANSWERS: dict[str, Any] = {"one": 1, "of words": ["ä", "\n", '"'], "of fields": {"ulps": 0.1}}


def answered(journal: Journal) -> tuple[dict[str, Any], list[str]]:
    """The answers to all questions, and the questions that had to be asked."""
    asked: list[str] = []

    def answer(question: str) -> Any:
        asked.append(question)
        return ANSWERS[question]

    return {q: journal.ask(q, lambda q=q: answer(q)) for q in ANSWERS}, asked


def journal_of(file: Path) -> bytes:
    answered(Journal(file))
    return file.read_bytes()


@given(st.data())
def test_any_prefix_of_a_journal_goes_on_to_the_same_answers(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        whole = journal_of(Path(folder) / "whole.jsonl")
        kept = whole[: data.draw(st.integers(0, len(whole)))]
        file = Path(folder) / "killed.jsonl"
        file.write_bytes(kept)

        answers, asked = answered(Journal(file))

        assert answers == ANSWERS
        assert asked == list(ANSWERS)[kept.count(b"\n") :]
        assert file.read_bytes() == whole


def test_a_question_has_the_answer_of_its_own_line() -> None:
    journal = Journal()
    journal.put(["a", 1], "first")
    journal.put(["a", 2], "second")

    assert journal.get(["a", 1]) == "first"
    assert journal.get(["a", 3]) is None


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    file = tmp_path / "threads.jsonl"
    journal = Journal(file)

    def write(thread: int) -> None:
        for number in range(50):
            journal.put([thread, number], "x" * 5000)

    threads = [Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    lines = file.read_text().splitlines()
    assert {json.loads(line)["answer"] for line in lines} == {"x" * 5000}
    assert len(Journal(file).answers) == len(lines) == 200


@pytest.mark.parametrize("text", ["a note\n", "a note", "{}\n", "[1]\n", "\xff\n"])
def test_a_file_that_is_no_journal_is_refused_and_stays(tmp_path: Path, text: str) -> None:
    file = tmp_path / "notes.txt"
    file.write_text(text, "latin-1")

    with pytest.raises(ValueError, match=r"notes.txt:1 is no line of a journal"):
        Journal(file)

    assert file.read_text("latin-1") == text


WRITER = """\
import sys
from pathlib import Path
from relax_egraph.base.journal import Journal
journal = Journal(Path(sys.argv[1]))
journal.put("q", 1)
print("written", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="files are not locked")
def test_a_journal_belongs_to_one_process_until_it_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "shared.jsonl"
    other = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"written\n"

    with pytest.raises(RelaxEgraphError, match=r"shared.jsonl: another process is writing"):
        Journal(file)
    other.kill()
    other.communicate()

    assert Journal(file).get("q") == 1
