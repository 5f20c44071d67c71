"""The command relax-egraph rules check, as a writer of rules uses it."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import Result

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.verify.rule_text import rule_text
from tests.support.command import invoke

SOUND = """\
; -(-x) = x
; float: exact
(rewrite (R.negative (R.negative x)) x :name "negative-twice-again")
"""

UNSOUND = """\
; e^x = sin x, where both are
; float: fast
(rule ((= t (R.exp x)) (= u (R.sin x)))
      ((union t u))
  :name "exp-is-sin")
"""

CONDITIONAL = """\
; Σ x + Σ y = Σ (x + y)
; float: reassociates
(rewrite (R.add (R.sum x (vec-of 0) false) (R.sum y (vec-of 0) false))
         (R.sum (R.add x y) (vec-of 0) false)
  :name "sum-of-sums")
"""

ROUNDING = """\
; (x + y) + z = x + (y + z)
; float: exact
(rewrite (R.add (R.add x y) z) (R.add x (R.add y z))
  :name "add-regrouped")
"""

SILENT = """\
; for no x
(rewrite (R.exp x) x :when ((= 2 3)) :name "exp-gone")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(text: str, *args: object) -> Result:
    Path("my.egg").write_text(text)
    return invoke("rules", "check", "my.egg", "--processes", 1, *args)


def without_values(output: str) -> str:
    """`output` without operands and results, which the check draws."""
    lines = output.splitlines(keepends=True)
    first = next(k for k, line in enumerate(lines) if line.startswith("  for "))
    rest = lines.index("\n", first) if "\n" in lines[first:] else len(lines)
    return "".join((*lines[:first], "…\n", *lines[rest:]))


def test_sound_rules_are_counted() -> None:
    result = check(SOUND)

    assert (
        result.output
        == """\
┏━━━━━━━┳━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━┓
┃ kind  ┃ rules ┃ weaker than declared ┃
┡━━━━━━━╇━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━┩
│ exact │     1 │                      │
└───────┴───────┴──────────────────────┘
1 rule: 1 as declared, 0 not; 1 of proven shapes
"""
    )
    assert result.exit_code == 0


def test_each_rule_is_told_of_on_request() -> None:
    result = check(SOUND, "--verbose")

    assert result.output.startswith("negative-twice-again (my.egg:3:1): exact; ")
    assert check(SOUND, "--quiet").output == ""


def test_an_unsound_rule_is_shown_with_operands_and_both_results() -> None:
    result = check(UNSOUND, "--quiet")

    assert (
        result.output
        == """\
my.egg:3:1: exp-is-sin: unsound

    1 | ; e^x = sin x, where both are
    2 | ; float: fast
    3 | (rule ((= t (R.exp x)) (= u (R.sin x)))
    4 |       ((union t u))
      |        ^
    5 |   :name "exp-is-sin")

  for     x  R.Tensor((), "float32") = 0.0
  gives   left is 1.0, right is 0.0

"""
    )
    assert result.exit_code == 1


def test_the_premise_that_is_missing_is_a_line_to_paste() -> None:
    result = check(CONDITIONAL, "--quiet")

    assert (
        without_values(result.output)
        == """\
my.egg:3:1: sum-of-sums: sound only under a condition

    1 | ; Σ x + Σ y = Σ (x + y)
    2 | ; float: reassociates
    3 | (rewrite (R.add (R.sum x (vec-of 0) false) (R.sum y (vec-of 0) false))
    4 |          (R.sum (R.add x y) (vec-of 0) false)
      |          ^
    5 |   :name "sum-of-sums")

…

  It holds if x and y have one shape:

    +   :when ((= (shape-of x) (shape-of y)))

"""
    )
    assert result.exit_code == 1


def test_what_is_suggested_is_sound() -> None:
    (verdict,) = json.loads(check(CONDITIONAL, "--json").output)["verdicts"]

    assert verdict["kind"] == "conditional"
    assert not verdict["sound"]
    assert check(verdict["suggested"]).exit_code == 0


def test_a_rule_that_rounds_otherwise_is_shown_with_its_float_class() -> None:
    result = check(ROUNDING, "--quiet", "--seed", "1")

    first, *rest = without_values(result.output).split("\n", 1)
    assert first.startswith("my.egg:3:1: add-regrouped: reassociates (it differs by ")
    assert first.endswith(" ulp and on subnormal), but declares exact")
    assert rest == [
        """
    1 | ; (x + y) + z = x + (y + z)
    2 | ; float: exact
    3 | (rewrite (R.add (R.add x y) z) (R.add x (R.add y z))
      |                                ^
    4 |   :name "add-regrouped")

…

  To say so:

    - ; float: exact
    + ; float: reassociates

"""
    ]
    assert check(ROUNDING.replace("exact", "reassociates")).exit_code == 0


def test_a_rule_that_never_fires_is_a_failure() -> None:
    result = check(SILENT, "--quiet")

    assert (
        result.output
        == """\
my.egg:2:1: exp-gone: never fired

    1 | ; for no x
    2 | (rewrite (R.exp x) x :when ((= 2 3)) :name "exp-gone")

  because no instance was found; mostly refused: 2 is not 3

"""
    )
    assert result.exit_code == 1


def test_the_kinds_are_counted_with_those_that_declare_less() -> None:
    result = check(SOUND + UNSOUND + SILENT)

    assert result.output.endswith("""\
┏━━━━━━━━━━━━━┳━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━┓
┃ kind        ┃ rules ┃ weaker than declared ┃
┡━━━━━━━━━━━━━╇━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━┩
│ exact       │     1 │                      │
│ unsound     │     1 │                    1 │
│ never fired │     1 │                    1 │
└─────────────┴───────┴──────────────────────┘
3 rules: 1 as declared, 2 not; 1 of proven shapes
""")


def test_one_rule_of_many_is_checked() -> None:
    result = check(SOUND + UNSOUND, "--only", "negative-twice-again", "--json", "--trials", 5)

    told = json.loads(result.stdout)
    (verdict,) = told["verdicts"]
    assert result.exit_code == 0
    assert (told["seed"], told["trials"]) == (0, 5)
    assert (verdict["rule"], verdict["kind"]) == ("negative-twice-again", "exact")
    assert verdict["suggested"] is None


def test_the_same_seed_finds_the_same() -> None:
    first, second = (check(CONDITIONAL, "--seed", 3).output for _ in range(2))

    assert first == second


def test_a_rule_of_the_book_is_checked_without_files() -> None:
    result = invoke("rules", "check", "--only", "add-zero", "--processes", 1, "--json")

    (verdict,) = json.loads(result.stdout)["verdicts"]
    assert (verdict["rule"], verdict["sound"]) == ("add-zero", True)
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nowhere.egg"], "File 'nowhere.egg' does not exist."),
        (
            ["my.egg", "--only", "negative"],
            "there is no rule 'negative'; similar: negative-twice-again",
        ),
        (["my.egg", "--only", "add-zero"], "there is no rule 'add-zero'; similar: "),
        (["my.egg", "--trials", "0"], "0 is not in the range x>=1."),
        (["my.egg", "-v", "-q"], "--verbose and --quiet exclude each other"),
    ],
)
def test_wrong_use_is_status_2(args: list[str], message: str) -> None:
    Path("my.egg").write_text(SOUND)

    result = invoke("rules", "check", *args)

    assert result.exit_code == 2
    assert message in result.output


def test_a_file_without_rules_is_status_1() -> None:
    Path("empty.egg").write_text("; nothing but words\n(relation my-own (Tensor))\n")

    result = invoke("rules", "check", "empty.egg")

    assert result.exit_code == 1
    assert result.output == "Error: empty.egg has no rules: none was checked\n"


def test_a_file_with_the_name_of_a_family_is_checked() -> None:
    Path("facts.egg").write_text("(rewrite (R.abs x) x)")

    result = invoke("rules", "check", "facts.egg", "--processes", 1)

    assert result.exit_code == 1
    assert result.output.startswith("facts.egg:1:1: facts.egg:1: sound only under a condition\n")
    assert result.output.endswith("1 rule: 0 as declared, 1 not\n")


def test_a_file_that_does_not_read_is_status_1() -> None:
    result = check("(rewrite (R.nn.rely x) x)\n(rewrite (R.exp x))\n")

    assert result.exit_code == 1
    assert result.output.startswith("Error: my.egg:1:10: unknown operator R.nn.rely\n")
    assert result.output.endswith("\n\n2 errors in my.egg\n")


LONG = f"(= 1 {'x' * 80})"

PREMISES = {
    "(rewrite (R.exp x) x)": "(rewrite (R.exp x) x :when ((= 1 g)))",
    "(rewrite (R.exp x) x :when ())": "(rewrite (R.exp x) x :when ((= 1 g)))",
    "(rewrite (R.exp x) x :when ((is-const x)) :subsume)": (
        "(rewrite (R.exp x) x :when ((is-const x) (= 1 g)) :subsume)"
    ),
    "(rewrite (R.exp x)\n  x\n  :subsume)": (
        "(rewrite (R.exp x)\n  x\n  :when ((= 1 g))\n  :subsume)"
    ),
    "(rule ((= t (R.exp x)))\n      ((union t x)))": (
        "(rule ((= t (R.exp x)) (= 1 g))\n      ((union t x)))"
    ),
}


@pytest.mark.parametrize("rule", PREMISES)
def test_a_premise_is_put_where_premises_stand(rule: str) -> None:
    book = RuleBook.default([f"; a law\n{rule}\n"])
    text = rule_text(book, book.rules[-1])

    assert text.with_premise("(= 1 g)") == f"; a law\n{PREMISES[rule]}"


def test_a_premise_that_is_long_has_a_line_of_its_own() -> None:
    book = RuleBook.default(["(rule ((= t (R.exp x)))\n      ((union t x)))\n"])
    text = rule_text(book, book.rules[-1])

    assert text.with_premise(LONG) == (
        f"(rule ((= t (R.exp x))\n       {LONG})\n      ((union t x)))"
    )


def test_a_float_class_is_stated_where_none_is() -> None:
    book = RuleBook.default(["; a law\n(rewrite (R.exp x) x)\n"])
    text = rule_text(book, book.rules[-1])

    assert text.with_class("fast") == "; a law\n; float: fast\n(rewrite (R.exp x) x)"
    assert text.conclusion == (2, 20)


def test_a_module_registers_the_functions_that_rules_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = tmp_path / "mine.egg"
    rules.write_text('(rewrite (R.nn.relu x) (R.call_pure_packed "cli.relu" (vec-of x)))')
    (tmp_path / "kernels_of_mine.py").write_text(
        "import numpy as np, relax_egraph as rx\n"
        '@rx.register_func("cli.relu")\n'
        "def relu(x):\n"
        "    return np.maximum(x, x.dtype.type(0))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])

    alone = invoke("rules", "check", rules, "--trials", 3)
    known = invoke("rules", "check", rules, "--trials", 3, "--import", "kernels_of_mine")
    wrong = invoke("rules", "check", rules, "--import", "no_such_module")

    assert alone.exit_code == 1
    assert "not checked" in alone.stdout
    assert "no meaning is registered for cli.relu" in alone.stdout
    assert (known.exit_code, known.stdout.splitlines()[-1]) == (0, "1 rule: 1 as declared, 0 not")
    assert wrong.exit_code == 1
    assert "no_such_module cannot be imported" in wrong.output
