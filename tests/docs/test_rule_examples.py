"""``docs/examples.json`` is of the rules as they are."""

import json

import pytest

from docs import examples
from relax_egraph.prove.user_rules import equating

RULES = equating(examples.BOOK)
ROWS = {row["name"]: row for row in json.loads(examples.LEDGER.read_text("utf-8"))}


def test_every_rule_that_equates_something_is_there() -> None:
    assert {name: row["of"] for name, row in ROWS.items()} == {
        rule.name: examples.digest(rule) for rule in RULES
    }, "make docs writes it"


def test_nearly_all_rules_have_an_example() -> None:
    assert len(examples.examples()) >= 0.94 * len(RULES)


@pytest.mark.parametrize("rule", RULES[::45], ids=lambda rule: rule.name)
def test_the_example_is_one_that_egglog_matches(rule: examples.Rule) -> None:
    assert examples.row(rule) == ROWS[rule.name], "make docs writes it"


def test_an_example_is_a_program_before_and_after() -> None:
    example = examples.examples()["silu-from-sigmoid"]

    assert example == examples.Example(
        ('x: R.Tensor((2, 2), "float32")',),
        "R.multiply(x, R.sigmoid(x))",
        "R.nn.silu(x)",
    )
