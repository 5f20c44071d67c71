"""What the page begins with, and the command that serves it."""

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np

import relax_egraph as rx
from relax_egraph.play.answers import answer
from relax_egraph.play.asked import Asked
from relax_egraph.play.examples import examples
from relax_egraph.play.start import Start, start_of
from tests.support.command import invoke

FIRST = examples()[0]


def saved(folder: Path) -> Path:
    """A program with a constant, in a file."""
    text = """
@R.function
def main(x: R.Tensor(("n", 3), "float32")):
    with R.dataflow():
        y = R.cos(R.negative(R.add(x, metadata["relax.expr.Constant"][0])))
        R.output(y)
    return y
"""
    path = folder / "model.relax"
    rx.save_module(rx.parse(text, constants=[np.array([1, 2, 3], np.float32)]), path)
    return path


def test_without_files_the_first_example_is_shown() -> None:
    assert start_of(None, None) == Start(FIRST.program, FIRST.rules)


def test_the_constants_of_a_model_are_in_its_program(tmp_path: Path) -> None:
    rules = tmp_path / "my.egg"
    rules.write_text(FIRST.rules)

    start = start_of(rules, saved(tmp_path))
    result = answer(Asked("result", start.program, start.rules, file="my.egg", model=start.model))

    assert (start.rules, start.file) == (FIRST.rules, "my.egg")
    assert 'metadata["relax.expr.Constant"][0]' in start.program
    assert result["mistakes"] == []
    assert [kernel["operators"] for kernel in result["kernels"]] == [["add", "cos"]]


def test_one_rule_file_and_one_model_are_served(tmp_path: Path) -> None:
    for name in ("a.egg", "b.egg"):
        (tmp_path / name).touch()

    result = invoke("play", tmp_path / "a.egg", tmp_path / "b.egg")

    assert result.exit_code == 2
    assert "needs at most one rule file (.egg) and one model" in result.stderr


def test_the_command_serves_until_it_is_interrupted() -> None:
    command = [sys.executable, "-m", "relax_egraph", "play"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            with urllib.request.urlopen(address, timeout=60) as page:
                served = page.read().decode()
            process.send_signal(signal.SIGINT)
            status = process.wait(60)
        finally:
            process.kill()
    assert status == 0
    assert "<title>relax-egraph: playground</title>" in served
