"""The tables of `README.md` are whole."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
README = (FOLDER / "README.md").read_text("utf-8")
NAMED = {(file, test) for test, file in re.findall(r"\[`(test_\w+)`\]\((test_\w+\.py)\)", README)}
SECTIONS = [
    rows
    for s in re.split(r"(?m)^## ", README)[1:]
    if (rows := re.findall(r"(?m)^\| (\d+)\.(.*)$", s))
]
"""The rows of each section, as number and rest; several tables of a section are one."""


def defined_in(file: str) -> set[tuple[str, str]]:
    text = (FOLDER / file).read_text("utf-8")
    return {(file, test) for test in re.findall(r"(?m)^def (test_\w+)\(", text)}


@pytest.mark.parametrize("file", sorted({file for file, _ in NAMED}))
def test_the_tests_of_a_file_are_those_that_are_named(file: str) -> None:
    assert defined_in(file) == {pair for pair in NAMED if pair[0] == file}


def test_the_listings_are_numbered_without_a_gap() -> None:
    numbers = [[int(number) for number, _ in rows] for rows in SECTIONS]

    assert numbers == [list(range(1, len(rows) + 1)) for rows in SECTIONS]


def test_each_listing_has_a_test() -> None:
    untested = [
        number + rest for rows in SECTIONS for number, rest in rows if "](test_" not in rest
    ]

    assert untested == []
