"""Every mistake in a script is refused with its place and, where one is close, the right name.

``tests/script/errors.txt`` is a list of cases: a title, a text, and the whole message.
"""

import sys
from pathlib import Path

import pytest

from relax_egraph.errors import ScriptError
from relax_egraph.script import parse

CASES = Path(__file__).with_name("errors.txt").read_text("utf-8")


@pytest.mark.parametrize("case", CASES.split("# -----\n"), ids=lambda c: c.splitlines()[0][2:])
def test_a_mistake_is_refused_with_its_place(case: str) -> None:
    written, _, expected = case.partition("# =====\n")
    text = written.split("\n", 1)[1]

    with pytest.raises(ScriptError) as raised:
        parse(text, filename="f.py")

    assert f"{raised.value}\n" == expected


def test_an_expression_may_not_be_nested_without_end() -> None:
    depth = 3_000 if sys.version_info < (3, 13) else 20_000  # what Python's own parser refuses
    text = f"@R.function\ndef main(x: R.Object):\n    return {'-' * depth}x"

    with pytest.raises(ScriptError) as raised:
        parse(text)

    assert raised.value.message == "an expression is nested too deeply"


def test_a_text_that_is_no_text_is_refused() -> None:
    with pytest.raises(ScriptError, match="null bytes"):
        parse("a\0b")
