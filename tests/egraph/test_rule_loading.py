"""What can be given as rules: paths, texts, and what was loaded before, in any combination."""

from pathlib import Path

import pytest

import relax_egraph as rx
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.errors import RuleError

TWICE = """
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        lv = R.log(x)
        gv = R.exp(lv)
        R.output(gv)
    return gv
"""

CANCEL = '(rewrite (R.exp (R.log x)) x :name "my-exp-of-log")\n'
SQUARE = '(rewrite (R.multiply x x) (R.square x) :name "my-square")\n'
FAST = """
; log(exp x) = x, where exp does not overflow
; float: fast
(rewrite (R.log (R.exp x)) x :name "my-log-of-exp")
"""


def names(*user: rx.rules.Given, fast_math: bool = False) -> list[str]:
    """The names of the user's rules."""
    book = RuleBook.default(user, fast_math=fast_math, families=())
    return [rule.name for rule in book.rewrites]


def test_a_file_is_loaded_once_and_used_often(tmp_path: Path) -> None:
    path = tmp_path / "my.egg"
    path.write_text(CANCEL)

    mine = rx.rules.load(path)
    path.unlink()

    for _ in range(2):
        assert "R.exp" not in rx.optimize(rx.parse(TWICE), rules=[mine]).script()
    assert mine == rx.rules.load(mine)


def test_a_mistake_is_said_when_the_file_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "my.egg"
    path.write_text("(rewrite (R.exq x) x)\n")

    with pytest.raises(RuleError, match=r"my\.egg:1:10: unknown operator R\.exq"):
        rx.rules.load(path)


def test_paths_texts_and_loaded_rules_combine(tmp_path: Path) -> None:
    path = tmp_path / "more.egg"
    path.write_text("(rewrite (R.sqrt (R.square x)) (R.abs x))\n")

    loaded = rx.rules.load(CANCEL)

    assert names(loaded, SQUARE, path, str(path.with_name("more.egg")))[:3] == [
        "my-exp-of-log",
        "my-square",
        "more.egg:1",
    ]


def test_texts_that_were_loaded_apart_have_names_of_their_own() -> None:
    first, second = (rx.rules.load(f"(rewrite (R.{op} x) x)") for op in ("exp", "log"))

    assert names(first, second) == ["<rules>:1", "<rules-2>:1"]


def test_a_later_file_uses_what_an_earlier_one_declares() -> None:
    declares = "(relation is-nonnegative (Tensor))"
    uses = '(rewrite (R.abs x) x :when ((is-nonnegative x)) :name "my-abs-of-positive")'

    assert names(declares, uses) == ["my-abs-of-positive"]
    with pytest.raises(RuleError):
        names(uses, declares)


@pytest.mark.parametrize(
    ("rule", "place"),
    [
        ("(rewrite (R.abs weight) weight)", "1:17"),
        ("(rewrite (R.abs x) x :when ((= weight (rank-of x)) (weight x)))", "1:32"),
        ("(rule ((= y (R.abs x))) ((let weight (R.log x)) (union y weight)))", "1:31"),
    ],
)
def test_a_variable_that_has_the_name_of_a_relation_is_refused(rule: str, place: str) -> None:
    declares = "(relation weight (Tensor))"
    refused = rf"<rules-2>:{place}: weight is the name of a relation, and of no variable"

    with pytest.raises(RuleError, match=refused):
        names(declares, rule)
    if "(weight " not in rule:  # what a later file declares is no matter
        assert names(rule, declares)


def test_a_relation_that_has_the_name_of_a_ruleset_is_refused() -> None:
    with pytest.raises(RuleError, match="<rules>:1:11: lower is the name of a ruleset"):
        names("(relation lower (Tensor))")


def test_a_family_can_be_replaced_by_a_file_with_rules_of_its_names() -> None:
    own = rx.rules.text("fma")

    with pytest.raises(RuleError, match="fma"):
        rx.rules.load(own)
    mine = rx.rules.load(own, without=["fma"])

    book = RuleBook.default([mine], without=["fma"])
    assert "fma-from-add-multiply" in book.of_user


def test_a_string_is_a_path_if_it_looks_like_one(tmp_path: Path) -> None:
    path = tmp_path / "odd (x86).egg"
    path.write_text(CANCEL)

    assert names(str(path)) == ["my-exp-of-log"]
    assert names("") == names("; nothing") == []
    for missing in ("missing.egg", Path("(missing)")):
        with pytest.raises(FileNotFoundError):
            names(missing)


@pytest.mark.parametrize("text", ["missing", "w =", '"O"', "x" * 300, "(x).egg"])
def test_a_text_that_is_no_form_is_not_opened(text: str) -> None:
    with pytest.raises(RuleError) as error:
        names(text)

    assert str(error.value).startswith("<rules>:1:")


def test_a_text_without_a_form_may_have_meant_a_file() -> None:
    with pytest.raises(RuleError) as error:
        names("missing")

    assert (
        str(error.value)
        == """\
<rules>:1:1: unexpected missing: it stands outside of any form
    missing
    ^
a rule is a form, (rewrite …); a name of a file ends in .egg, or the file is there"""
    )


def test_line_ends_and_marks_of_windows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "my.egg"
    path.write_bytes(b"\xef\xbb\xbf; law\r\n" + CANCEL.encode().replace(b"\n", b"\r\n"))

    (rule,) = RuleBook.default([path], families=()).rewrites

    assert (rule.law, rule.span.line) == ("law", 2)


def test_rules_of_class_fast_are_left_out_unless_asked_for() -> None:
    def fast(book: RuleBook) -> list[Rule]:
        return [rule for rule in book.rules if rule.float_class == "fast"]

    assert not fast(RuleBook.default())
    assert fast(RuleBook.default(fast_math=True))


def test_a_users_rule_runs_unless_it_says_that_it_is_fast() -> None:
    assert names(FAST, CANCEL) == ["my-exp-of-log"]
    assert names(FAST, CANCEL, fast_math=True) == ["my-log-of-exp", "my-exp-of-log"]


def test_equal_books_are_equal_and_read_once() -> None:
    first, second = (RuleBook.default([rx.rules.load(CANCEL)]) for _ in range(2))

    assert first == second
    assert first.program is second.program
