"""The questions of several tabs: one at a time each, bounded, and ended by newer edits."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from os import getpid

import pytest

from relax_egraph.play.tabs import Outdated, Tabs
from relax_egraph.workers.process import Death, Limits

GIB = 1 << 30


@pytest.fixture
def tabs() -> Iterator[Tabs[object]]:
    tabs = Tabs[object](2, Limits(30.0, 2 * GIB), int)
    yield tabs
    tabs.close()


def test_a_tab_keeps_its_worker(tabs: Tabs[object]) -> None:
    here = [tabs.ask("a", edit, getpid) for edit in range(3)]

    assert len(set(here)) == 1
    assert here[0] != getpid()


def test_a_newer_edit_ends_the_older_question_of_its_tab_alone(tabs: Tabs[object]) -> None:
    tabs.ask("a", 0, int)
    with ThreadPoolExecutor(2) as threads:
        older = threads.submit(tabs.ask, "a", 1, partial(time.sleep, 3600))
        other = threads.submit(tabs.ask, "b", 0, partial(max, 1, 2))
        time.sleep(0.2)

        assert tabs.ask("a", 2, partial(max, 3, 4)) == 4
        assert other.result() == 2
        with pytest.raises(Outdated):
            older.result()


def test_an_older_edit_is_not_answered(tabs: Tabs[object]) -> None:
    tabs.ask("a", 5, int)

    with pytest.raises(Outdated):
        tabs.ask("a", 4, int)


def test_a_question_beyond_its_limits_ends_and_the_next_one_is_answered() -> None:
    tabs = Tabs[object](1, Limits(1.0, 2 * GIB), int)
    try:
        late = tabs.ask("a", 0, partial(time.sleep, 3600))
        large = tabs.ask("a", 0, partial(bytes, 3 * GIB))

        assert isinstance(late, Death)
        assert isinstance(large, Death)
        assert (str(late), large.cause) == ("was ended after 1 s", "memory")
        assert tabs.ask("a", 0, partial(max, 1, 2)) == 2
    finally:
        tabs.close()


def test_what_a_question_raises_is_raised(tabs: Tabs[object]) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        tabs.ask("a", 0, partial(int, "no"))
