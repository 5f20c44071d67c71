"""What is wrong with a rule file is said where it is: every message by its full text.

Each ``tests/egraph/errors/*.egg`` is a rule file, a line ``; =====``, and the message that it gets.
"""

import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.errors import RuleError
from relax_egraph.rules import FAMILIES

FILES = sorted((Path(__file__).parent / "errors").glob("*.egg"))
SWAP = '(rewrite (R.add x y) (R.add y x) :name "swap")\n'


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_wrong_file_is_refused_with_this_message(path: Path) -> None:
    text, expected = path.read_text("utf-8").split("; =====\n")

    with pytest.raises(RuleError) as error:
        RuleBook(FAMILIES, (Source(path.name, text),))

    assert f"{error.value}\n" == expected


def test_a_file_of_wrong_forms_is_not_read_to_its_end() -> None:
    with pytest.raises(RuleError) as error:
        RuleBook((), (Source("wrong.egg", "(oops)\n" * 200),))

    assert str(error.value).endswith("""
wrong.egg:100:1: this is error 100: what follows is not read
    (oops)
    ^

100 errors in wrong.egg""")


def test_the_errors_of_a_file_are_one_exception_also_in_another_process() -> None:
    with pytest.raises(RuleError) as raised:
        RuleBook((), (Source("wrong.egg", "(oops)\n(rewrite (R.exp x) x\n"),))
    error = raised.value

    copied = pickle.loads(pickle.dumps(error))

    assert str(copied) == str(error)
    assert [e.span.line for e in (copied, *copied.others)] == [1, 2]
    assert copied.message == "unknown command oops"


def test_a_rule_may_not_have_the_name_of_one_in_another_file(tmp_path: Path) -> None:
    first, second = tmp_path / "first.egg", tmp_path / "second.egg"
    first.write_text(SWAP)
    second.write_text(f"; again\n{SWAP}")

    with pytest.raises(RuleError) as error:
        RuleBook.default([first, second])

    assert str(error.value) == (
        f"{second}:2:1: a second rule is named swap\n    {SWAP}    ^\nthe first is at {first}:1:1"
    )


def test_a_rule_without_ruleset_goes_to_one_named_after_its_file(tmp_path: Path) -> None:
    path = tmp_path / "my-rules.egg"
    path.write_text(f"; x + y = y + x\n; float: exact\n{SWAP}")

    (rule,) = RuleBook.default([path], families=()).rewrites

    assert (rule.ruleset, rule.law, rule.float_class) == ("my-rules", "x + y = y + x", "exact")


def test_rules_without_a_name_are_named_by_their_place() -> None:
    text = "(rewrite (R.exp x) x)\n(rewrite (R.log x) x) (rewrite (R.abs x) x)\n"

    book = RuleBook.default([text], families=())

    assert [r.name for r in book.rewrites] == ["<rules>:1", "<rules>:2", "<rules>:2:23"]


def test_a_file_may_declare_what_its_rules_need(tmp_path: Path) -> None:
    path = tmp_path / "pairs.egg"
    path.write_text("""
        (ruleset pairs)
        (datatype Pair (Both Tensor Tensor))
        (sort Pairs (Vec Pair))
        (relation is-weight (Tensor))
        (function weight-of (Tensor) i64 :merge (min old new))
        (constructor Widened (Tensor i64) Tensor)
        (rule ((= t (R.add x y)) (= n (rank-of t)))
              ((let pair (Both x y)) (is-weight t) (set (weight-of t) n) (union t (Widened x n)))
          :ruleset pairs :name "declared-things")
    """)

    (rule,) = RuleBook.default([path], families=()).rewrites

    assert rule.name == "declared-things"


def test_what_is_left_out_must_exist() -> None:
    with pytest.raises(ValueError, match="is named 'add-zeros'; did you mean add-zero"):
        RuleBook.default(without=["add-zeros"])


def test_a_single_rule_can_be_left_out() -> None:
    book = RuleBook.default(without=["idioms", "add-zero"])

    assert "subtract-zero" in {rule.name for rule in book.rewrites}
    assert "add-zero" not in {rule.name for rule in book.rewrites}
    assert "idioms" not in {rule.ruleset for rule in book.rewrites}


TOKENS = st.sampled_from(
    [
        *("(", ")", "(", ")", "rewrite", "birewrite", "rule", "datatype", "function", "relation"),
        *("R.add", "R.exp", "R.const", "K.load", "shape-of", "vec-of", "=", "union", "set", "let"),
        *("x", "y", "_", "1", "1.5", '"text"', "true", ":when", ":name", ":ruleset", ":subsume"),
        *("Tensor", "i64", "\n", ";", '"'),
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(TOKENS, max_size=25))
def test_any_text_reads_or_is_refused_with_a_place(tokens: list[str]) -> None:
    source = Source("any.egg", "(rewrite (R.exp x) x) (" + " ".join(tokens))

    try:
        said = str(RuleBook((), (source,)).rewrites[0].span)
    except RuleError as error:
        said = str(error)

    assert said.startswith("any.egg:")
