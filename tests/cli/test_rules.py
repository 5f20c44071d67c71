"""The commands relax-egraph rules show and rules test, as a writer of rules uses them."""

import json
from pathlib import Path

import pytest

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.verify.file_tests.cases import read_tests
from relax_egraph.verify.file_tests.pool import run_tests
from relax_egraph.verify.file_tests.run import run_test
from tests.support.command import invoke

RULES = """\
; cos(-x) = cos(x)
; float: exact
(rewrite (R.cos (R.negative x)) (R.cos x) :name "cos-is-even")

; sin(-x) = sin(x), which is wrong
; float: exact
(rewrite (R.sin (R.negative x)) (R.sin x) :name "sin-is-even")
"""

EVEN = """\
; RULES: ../my.egg canon
; The cosine is even.
; FIRES: cos-is-even
(let $x (Leaf 0))
(dtype-claim $x "float32")
(shape-claim $x (vec-of (DimSym "n") (DimSym "4")))
(let $y (R.cos (R.negative $x)))
(run-schedule (saturate (seq (run facts) (run dim) (run my))))
(check (= $y (R.cos $x)))
(fail (check (= $y $x)))
"""

WRONG = """
; -----
; The sine is even.
; FIRES: sin-is-even
(let $x (Leaf 0))
(let $y (R.sin (R.negative $x)))
(run my 1)
(check (= $y (R.sin $x)))

; -----
; What is not so.
; FIRES: cos-is-even cos-is-evn
(let $x (Leaf 0))
(let $two (R.const 2.0 "float32"))
(shape-claim $x (vec-of (DimSym "n")))
(set (const-scalar $two) 2.0)
(is-const $two)
(let $y (R.multiply $x (R.add $x $x)))
(run-schedule (saturate (seq (run facts) (run dim) (run my) (run canon))))
(check (= $y (R.multiply (R.subtract $x $x) $x)))
(check (= $y $x))
(check (= (shape-of $y) (vec-of)))
(check (is-const $x))
(check (is-float $x))
(check (R.exp $x))
(check (< 2 1))
(fail (check (const-scalar $two)))
(fail (check (= $y (R.multiply (R.add $x $x) $x))))

; -----
; No program.
(check (= (Leaf 0) (R.nn.rely (Leaf 0))))

; -----
(let $x (Leaf 0))
(extract $x)
(check (= $x $x))
"""

FAILURES = """\
tests/my.egg:13: The sine is even.
  13  expected each class to have one value
      one class has two values:
      (R.sin $x)               is 0.12539922 at [0]
      (R.sin (R.negative $x))  is -0.12539922 at [0]
      not so without sin-is-even

tests/my.egg:21: What is not so.
  22  expected cos-is-even to match
      it matched nothing; rewrites that matched: add-commutes, multiply-commutes, nonnegative-const
      its first premise fails: there is no R.cos at all
  22  expected cos-is-evn to match
      there is no such rule; did you mean cos-is-even?
  30  expected (check (= $y (R.multiply (R.subtract $x $x) $x)))
      $y is (R.multiply $x (R.add $x $x))
            (R.multiply (R.add $x $x) $x)
      nothing is (R.multiply (R.subtract $x $x) $x): there is no (R.subtract $x $x)
  31  expected (check (= $y $x))
      $y is (R.multiply $x (R.add $x $x))
            (R.multiply (R.add $x $x) $x)
      $x is (Leaf 0)
  32  expected (check (= (shape-of $y) (vec-of)))
      (shape-of $y) is (vec-of (DimSym "n"))
  33  expected (check (is-const $x))
      there is (is-const $two)
  34  expected (check (is-float $x))
      there is (is-float $two)
  35  expected (check (R.exp $x))
      there is no R.exp at all
  36  expected (check (< 2 1))
      it is false
  37  expected (fail (check (const-scalar $two)))
      there is (const-scalar $two), which is 2.0
  38  expected (fail (check (= $y (R.multiply (R.add $x $x) $x))))
      $y is (R.multiply $x (R.add $x $x))
            (R.multiply (R.add $x $x) $x)
      not so without multiply-commutes

tests/my.egg:41: No program.
  42  expected a program
      column 20: unknown operator R.nn.rely
          (check (= (Leaf 0) (R.nn.rely (Leaf 0))))
                             ^
      did you mean R.nn.relu?

tests/my.egg:45: (without a title)
  46  expected a program
      extract is not allowed in a file test
          (extract $x)
          ^
      a case is made by let, set and union, is run, and is checked

5 cases in 1 file: 1 passed, 4 failed
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a user works: rules, and a folder with their tests."""
    monkeypatch.chdir(tmp_path)
    Path("my.egg").write_text(RULES)
    Path("tests").mkdir()
    Path("tests/my.egg").write_text(EVEN)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_cases_pass_and_a_rule_that_no_case_sees_is_named() -> None:
    result = invoke("rules", "test", "tests", "--processes", 1, "--verbose")

    assert (
        result.output
        == """\
passed tests/my.egg:1: The cosine is even.
my.egg:7:1: rule sin-is-even matches in no case
1 case in 1 file: 1 passed, 0 failed
"""
    )
    assert result.exit_code == 0


@pytest.mark.usefixtures("folder")
def test_a_failure_says_what_is_expected_and_what_there_is() -> None:
    Path("tests/my.egg").write_text(EVEN + WRONG)

    result = invoke("rules", "test", "tests/my.egg", "--processes", 1)

    assert result.output == FAILURES
    assert result.exit_code == 1


@pytest.mark.usefixtures("folder")
def test_outcomes_are_json() -> None:
    Path("tests/my.egg").write_text(EVEN.replace("(check (= $y (R.cos $x)))", "(check (= $y $x))"))

    result = invoke("rules", "test", "tests/my.egg", "--json", "--processes", 1)

    told = json.loads(result.stdout)
    assert result.exit_code == 1
    assert told["rules_not_seen"] == [{"name": "sin-is-even", "place": "my.egg:7:1"}]
    (test,) = told["tests"]
    assert test.pop("matches")["cos-is-even"] == 1
    assert test == {
        "file": "tests/my.egg",
        "line": 1,
        "title": "The cosine is even.",
        "passed": False,
        "failures": [
            {
                "line": 9,
                "expected": "(check (= $y $x))",
                "found": [
                    "$y is (R.cos $x)",
                    "      (R.cos (R.negative $x))",
                    "$x is (Leaf 0)",
                ],
            }
        ],
    }


@pytest.mark.usefixtures("folder")
def test_rules_are_given_beside_what_the_file_names() -> None:
    Path("tests/my.egg").write_text(EVEN.replace("; RULES: ../my.egg canon\n", ""))

    result = invoke("rules", "test", "tests/my.egg", "--rules", "my.egg", "--processes", 1)

    assert result.exit_code == 0, result.output


@pytest.mark.usefixtures("folder")
def test_a_test_that_does_not_end_is_ended_and_the_others_run() -> None:
    Path("loop.egg").write_text(
        '(rewrite (R.exp x) (R.add (R.exp (R.abs x)) (R.exp (R.cos x))) :name "two-more")\n'
    )
    Path("tests/loop.egg").write_text("""\
; RULES: ../loop.egg
; It grows for ever.
; FIRES: two-more
(let $y (R.exp (Leaf 0)))
(run-schedule (saturate (run loop)))

; -----
; It grows once.
; FIRES: two-more
(let $y (R.exp (Leaf 0)))
(let $z (R.add (R.exp (R.abs (Leaf 0))) (R.exp (R.cos (Leaf 0)))))
(fail (check (= $y $z)))
""")

    never, once = run_tests(read_tests(Path("tests/loop.egg")), seconds=2)

    assert (
        str(never)
        == """\
tests/loop.egg:1: It grows for ever.
   1  expected a run that ends
      it did not end within 2 s"""
    )
    assert (
        str(once)
        == """\
tests/loop.egg:8: It grows once.
   9  expected two-more to match
      it matched nothing; rewrites that matched: none"""
    )


SILENT = """\
; RULES: ../my.egg
; No operand is negated.
; FIRES: cos-is-even
(let $x (Leaf 0))
(let $y (R.cos (R.exp $x)))
(run my 1)

; -----
; Another dtype.
; FIRES: exp-of-log
(let $x (Leaf 0))
(dtype-claim $x "float32")
(let $y (R.exp (R.log $x)))
(run-schedule (saturate (seq (run facts) (run dim) (run my))))

; -----
; Nothing runs.
; FIRES: cos-is-even
(let $y (R.cos (R.negative (Leaf 0))))
"""

WHY_SILENT = """\
tests/my.egg:1: No operand is negated.
   3  expected cos-is-even to match
      it matched nothing; rewrites that matched: none
      the first premise that fails, at $y:
        (R.cos (R.negative x))
               ^^^^^^^^^^^^^^ this is exp($x), no negative; the program has no negative at all

tests/my.egg:9: Another dtype.
  10  expected exp-of-log to match
      it matched nothing; rewrites that matched: none
      the first premise that fails, at $y:
        (= (dtype-of x) "float64")
           ^^^^^^^^^^^^ the dtype of $x is "float32"; needed is "float64"

tests/my.egg:17: Nothing runs.
  18  expected cos-is-even to match
      it matched nothing; rewrites that matched: none
      it matches at the end of the case: put (run my) there

my.egg:3:1: rule cos-is-even matches in no case
my.egg:5:1: rule exp-of-log matches in no case
3 cases in 1 file: 0 passed, 3 failed
"""


@pytest.mark.usefixtures("folder")
def test_of_a_rule_that_matched_nothing_the_first_premise_that_fails_is_said() -> None:
    of_log = '(rewrite (R.exp (R.log x)) x :when ((= (dtype-of x) "float64")) :name "exp-of-log")'
    Path("my.egg").write_text("".join(RULES.splitlines(keepends=True)[:3]) + f"\n{of_log}\n")
    Path("tests/my.egg").write_text(SILENT)

    result = invoke("rules", "test", "tests", "--processes", 1)

    assert result.output == WHY_SILENT


VOID = {
    "(check (= $x (R.leaf 0)))": "column 14: unknown operator R.leaf",
    "(check (= $x $nothing))": "column 14: no let names $nothing",
    "(fail (check (= $x any)))": "column 20: any stands for anything",
    "(check)": "check needs a fact",
    "(let $x (Leaf 1))\n(check (= $x $x))": "column 6: a second $x",
    '(include "my.egg")\n(check (= $x $x))': "include is not allowed in a file test",
    "(check (= $x (R.exp": "column 14: this '(' is never closed",
    "(check (= $x 3))": "column 11: this is of sort i64, where Tensor is needed",
}


@pytest.mark.parametrize("check", VOID)
def test_a_check_that_says_nothing_is_refused(check: str, tmp_path: Path) -> None:
    path = tmp_path / "case.egg"
    path.write_text(f"; RULES: canon\n; A title.\n(let $x (Leaf 0))\n{check}\n")

    (test,) = read_tests(path)
    (failure,) = run_test(test).failures

    assert (failure.expected, failure.found[0]) == ("a program", VOID[check])


WRONG_USE: dict[tuple[str, ...], str] = {
    ("test", "nowhere"): "Path 'nowhere' does not exist.",
    ("test", "my.egg"): (
        "Error: my.egg has no file test: a case with a (check ...) or a ; FIRES: line"
    ),
    ("test", "empty"): (
        "Error: empty has no .egg file with a file test: "
        "a case with a (check ...) or a ; FIRES: line"
    ),
    ("test", "tests", "--rules", "your.egg"): "File 'your.egg' does not exist.",
    (
        "show",
        "fma-add",
    ): "Error: there is no rule 'fma-add'; similar: fma-from-add-multiply, dim-add, ",
    ("list", "--family", "algebar"): "Error: there is no family 'algebar'; did you mean algebra?",
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("args", WRONG_USE, ids=" ".join)
def test_wrong_use_is_status_2(args: tuple[str, ...]) -> None:
    Path("empty").mkdir()

    result = invoke("rules", *args)

    assert result.exit_code == 2
    assert WRONG_USE[args] in result.output


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            "algbra",
            """\
Error: tests/my.egg:1:10: no family of rules is named algbra
    ; RULES: algbra
             ^
did you mean algebra?
""",
        ),
        (
            "canon ../your.egg",
            """\
Error: tests/my.egg:1:16: there is no file your.egg
    ; RULES: canon ../your.egg
                   ^
""",
        ),
    ],
)
def test_what_is_under_test_must_exist(said: str, message: str) -> None:
    Path("tests/my.egg").write_text(EVEN.replace("../my.egg canon", said))

    result = invoke("rules", "test", "tests")

    assert result.output == message
    assert result.exit_code == 1


@pytest.mark.usefixtures("folder")
def test_a_users_rule_is_shown() -> None:
    result = invoke("rules", "show", "cos-is-even", "--rules", "my.egg")

    assert (
        result.output
        == """\
cos-is-even  my.egg:3:1

    ; cos(-x) = cos(x)
    ; float: exact
    (rewrite (R.cos (R.negative x)) (R.cos x) :name "cos-is-even")

family    my
float     exact
matches   R.cos, R.negative
makes     R.cos
"""
    )


def test_a_rule_of_the_book_is_shown_with_what_deduces_what_it_reads() -> None:
    told = json.loads(invoke("rules", "show", "causal-mask", "--json").output)
    lines = invoke("rules", "show", "causal-mask").output.splitlines()

    assert told["place"].startswith("rules/attention.egg:")
    assert told["text"].endswith(':ruleset attention :name "causal-mask")')
    assert list(told["relations"]) == ["chosen-by", "triangle", "score-of"]
    ways = ["chosen-by-where", "hidden-by-where", "hidden-by-masked-fill"]
    assert told["relations"]["chosen-by"] == ways
    assert "below-by-tril" in told["relations"]["triangle"]
    assert told["tests"] == [
        next(line[10:] for line in lines if line.startswith("seen in   tests/rules/attention.egg:"))
    ]
    assert f"relations chosen-by, deduced by {', '.join(ways)}" in lines


def test_facts_and_guards_that_a_rule_reads_are_shown() -> None:
    told = json.loads(invoke("rules", "show", "member-even", "--json").output)

    assert told["matches"] == ["R.strided_slice", "DimSym"]
    assert told["facts"] == ["shape-of", "dim-ge", "dim-divides"]
    assert told["makes"] == []


def test_rules_are_listed_with_all_that_is_known_of_them() -> None:
    (rule,) = json.loads(invoke("rules", "list", "--family", "fma", "--json").output)[:1]

    assert rule["place"] == f"{rule['file']}:{rule['line']}:1"
    assert {"name", "ruleset", "kind", "law", "float_class", "form", "of_user"} <= set(rule)
    assert not rule["of_user"]


def test_rules_are_listed_whole_one_a_line() -> None:
    book = RuleBook.default(fast_math=True, bounded=True)

    lines = invoke("rules", "list").stdout.splitlines()

    assert [line.split("\t")[1] for line in lines] == [rule.name for rule in book.rules]
    assert {line.count("\t") for line in lines} == {4}
