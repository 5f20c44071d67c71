"""Tasks have the same answers in this process and in others, and go on from a journal."""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from relax_egraph.base.journal import Journal
from relax_egraph.workers.pool import Pool
from relax_egraph.workers.process import Death, Limits
from relax_egraph.workers.tasks import Ahead, Task, answers

MINUTE = Limits(60)


def square(number: int, folder: str) -> int:
    """The square, with a file for each time that it is computed."""
    with (Path(folder) / str(number)).open("a") as file:
        file.write("x")
    return number * number


def tasks(folder: Path, count: int = 5) -> list[Task]:
    folder.mkdir(exist_ok=True)
    return [Task(["square", n], partial(square, n, str(folder)), n) for n in range(count)]


def computed(folder: Path) -> list[int]:
    return sorted(int(file.name) for file in folder.iterdir() for _ in file.read_text())


@pytest.mark.parametrize("executor", [None, partial(Pool, 1), partial(Pool, 2)])
def test_a_run_that_was_killed_computes_only_the_rest(
    tmp_path: Path, executor: Callable[..., Pool] | None
) -> None:
    file, folder = tmp_path / "run.jsonl", tmp_path / "computed"
    whole = {n: n * n for n in range(5)}
    some = answers(tasks(folder), None, Journal(file), MINUTE)
    assert [next(some)[1], next(some)[1]] == [0, 1]
    some.close()

    rest = answers(tasks(folder), executor, Journal(file), MINUTE)

    assert {task.subject: answer for task, answer in rest} == whole
    assert computed(folder) == list(range(5))


def test_a_task_that_dies_is_an_answer_and_is_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    dies = [Task("dies", partial(os._exit, 3)), *tasks(tmp_path / "computed", 2)]

    found = {
        task.question[0]: a for task, a in answers(dies, partial(Pool, 1), Journal(file), MINUTE)
    }

    assert found == {"d": Death("crash", "with code 3", MINUTE), "square": 1}
    assert set(Journal(file).answers.values()) == {0, 1}


def test_answers_ahead_are_those_that_are_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "computed"
    first, second, third, *_ = every = tasks(folder)
    journal = Journal()
    with Pool(3) as pool:
        ahead = Ahead(lambda call: pool.run(call, MINUTE), journal, pool.cores)
        ahead.expect(every)
        while len(journal.answers) < 2:
            time.sleep(0.01)
        assert computed(folder) == [0, 1]

        assert [ahead.answer(task) for task in (third, second, first, first)] == [4, 1, 0, 0]
        ahead.close()

    assert computed(folder) == [0, 1, 2]


def test_one_core_computes_nothing_ahead(tmp_path: Path) -> None:
    def run(call: Callable[[], Any]) -> Any:
        return call()

    ahead = Ahead(run, Journal(), 1)
    first, *rest = tasks(tmp_path / "computed")
    ahead.expect(rest)

    assert ahead.answer(first) == 0
    assert computed(tmp_path / "computed") == [0]


def test_what_a_call_raises_ahead_is_raised_where_it_is_asked_for() -> None:
    with Pool(2) as pool:
        ahead = Ahead(lambda call: pool.run(call, MINUTE), Journal(), pool.cores)
        wrong = Task("wrong", partial(int, "x"))
        ahead.expect([wrong])

        with pytest.raises(ValueError, match="invalid literal"):
            ahead.answer(wrong)
        ahead.close()
