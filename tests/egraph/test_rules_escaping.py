"""No rule of a user escapes the check by what it, or its file, is called."""

from pathlib import Path

import pytest

import relax_egraph as rx
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.scope import ENGINE_RULESETS
from relax_egraph.rules import FACTS, FAMILIES

NAMES = (
    *FACTS,
    *FAMILIES,
    *ENGINE_RULESETS,
    "lower",
    "own",
    "trying",
    "helping",
    "forget",
    "---",
    "",
)

DROPPED = "(rewrite (R.abs x) x)"

MODULE = """
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        z = R.exp(R.abs(x))
        R.output(z)
    return z
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_any_name_is_a_family_of_its_own(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.egg"
    file.write_text(DROPPED)

    book = RuleBook.default([file], fast_math=True, bounded=True)

    (rule,) = (r for r in book.rewrites if r.name in book.of_user)
    assert rule.ruleset not in (*FACTS, *FAMILIES, *ENGINE_RULESETS, "lower")
    assert rule.ruleset in book.rulesets


def test_the_run_has_the_rule_that_is_checked(tmp_path: Path) -> None:
    for name in ("facts", "load", "forget"):
        file = tmp_path / f"{name}.egg"
        file.write_text(DROPPED)
        reasons = rx.explain(rx.parse(MODULE), [file], proof=True)
        assert reasons.rules[f"{name}.egg:1"] == 1
        assert f"{name}.egg:1" in {r for t in reasons.traces for r in t.written}


def test_files_of_one_name_have_rules_of_several(tmp_path: Path) -> None:
    files = [tmp_path / folder / "my.egg" for folder in "abc"]
    for file in files:
        file.parent.mkdir()
        file.write_text(DROPPED)

    book = RuleBook.default(files)

    names = [r.name for r in book.rewrites if r.name in book.of_user]
    assert names == ["my.egg:1", "my.egg:1:1", "my.egg:1:1 (2)"]


@pytest.mark.parametrize("form", ["(relation matched (Tensor))", "(ruleset helping)"])
def test_names_that_a_check_once_used_are_free(form: str) -> None:
    (verdict,) = rx.rules.check(f"{form} {DROPPED}", trials=3, processes=1)

    assert verdict.kind == "conditional"


def test_a_false_deduction_beside_an_equation_is_found() -> None:
    """The equation is true, and is not all that the rule does."""
    rule = """(rule ((= t (R.add x zero)) (= 0.0 (const-scalar zero)) (is-float x))
                    ((union t x) (is-nonnegative t)))"""

    (verdict,) = rx.rules.check(rule, processes=1)

    assert verdict.needs == "unsound"
