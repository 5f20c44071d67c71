"""A function runs once for every combination of choices, with what earlier runs noted."""

from itertools import product

from relax_egraph.prove.choices import Choices, Impossible, runs


def test_every_combination_is_run_once() -> None:
    def run(choices: Choices) -> tuple[int, str]:
        first = choices.of("first", (1, 2, 3))
        if first == 2:
            raise Impossible
        return first, choices.of(f"second beside {first}", "ab")

    found = [result for result in runs(run) if result is not None]

    assert sorted(found) == [*product((1, 3), "ab")]


def test_runs_begin_with_what_follows_from_the_choices_that_they_share() -> None:
    """As a run that begins with nothing comes to, by the same choices."""
    begun: list[tuple[object, int, int]] = []

    def run(choices: Choices) -> None:
        known = choices.known
        first = choices.of("first", (1, 2))
        choices.note(f"of {first}")
        second = choices.of("second", (1, 2))
        choices.note(f"of {first} and {second}")
        begun.append((known, first, second))

    assert [*runs(run)] == [None] * 4
    assert set(begun) == {(None, 1, 1), ("of 1", 1, 2), (None, 2, 1), ("of 2", 2, 2)}


def test_options_that_are_impossible_are_not_tried() -> None:
    def run(choices: Choices) -> tuple[int, int]:
        first = choices.of("first", (1, 2, 3), lambda n: n != 1)
        return first, choices.of("second", (1, 2, 3), lambda n: n < first)

    assert sorted(filter(None, runs(run))) == [(2, 1), (3, 1), (3, 2)]


def test_a_choice_without_a_possible_option_has_no_result() -> None:
    assert [*runs(lambda choices: choices.of("one", "ab", lambda _: False))] == [None]


def test_nothing_is_chosen_once_the_choices_are_contradictory() -> None:
    chosen: list[int] = []

    def run(choices: Choices) -> int:
        first = choices.of("first", (1, 2, 3))
        choices.contradictory = lambda: first == 2
        chosen.append(first)
        return 10 * first + choices.of("second", (4, 5))

    assert sorted(filter(None, runs(run))) == [14, 15, 34, 35]
    assert sorted(chosen) == [1, 1, 2, 3, 3]
