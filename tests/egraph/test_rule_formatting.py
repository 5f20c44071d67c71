"""The canonical layout of rule files."""

from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relax_egraph.egraph.rulebook.formatting import WIDTH, formatted
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.egraph.rulebook.reader import tokens
from relax_egraph.errors import RuleError
from tests.support.command import invoke

ROOT = Path(__file__).parents[2]
FILES = [*sorted((ROOT / "rules").glob("*.egg")), *sorted((ROOT / "tests/rules").glob("*.egg"))]


def laid_out(text: str) -> str:
    return formatted(Source("my.egg", dedent(text)))


def test_what_continues_a_form_stands_under_its_first_item() -> None:
    text = """\
        (rewrite (R.add (R.multiply a
          b) c)
            (R.ewise_fma a b c)
            :when ((is-float a)
            (= s   (shape-of c)))
         :name "fma"
        )
        """

    assert laid_out(text) == dedent("""\
        (rewrite (R.add (R.multiply a
                                    b) c)
                 (R.ewise_fma a b c)
          :when ((is-float a)
                 (= s (shape-of c)))
          :name "fma")
        """)


def test_a_long_line_is_broken_before_an_item_of_its_outermost_form() -> None:
    left = "(R.add (R.multiply first-factor second-factor) (R.multiply third-factor fourth))"
    text = f"(rewrite {left} (R.ewise_fma first-factor second-factor third-factor))\n"

    assert laid_out(text) == dedent(f"""\
        (rewrite {left}
                 (R.ewise_fma first-factor second-factor third-factor))
        """)


def test_comments_stay_where_they_are() -> None:
    text = """\


        ; a law


        ; float: exact
        (rewrite (R.exp x) ; the left side
        ; the right side
        x
          ; no option
        )   ; done
        (ruleset other)
        """

    assert laid_out(text) == dedent("""\
        ; a law

        ; float: exact
        (rewrite (R.exp x) ; the left side
                 ; the right side
                 x
          ; no option
          ) ; done
        (ruleset other)
        """)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_of_the_book_are_in_canonical_layout(path: Path) -> None:
    text = path.read_text("utf-8")

    assert formatted(Source(str(path), text)) == text


WORDS = st.sampled_from([*"abc", '"two words"', "R.nn.layer_norm", ":when", "; a remark\n", "-1.5"])
SPACES = st.sampled_from([" ", "\n", "\n  ", "  ", "\n\n"])
TERMS = st.recursive(
    st.tuples(WORDS, SPACES).map("".join),
    lambda inner: st.tuples(st.lists(inner, max_size=8), SPACES).map(
        lambda pair: f"({''.join(pair[0])}){pair[1]}"
    ),
    max_leaves=40,
)
HEADS = st.sampled_from(["rewrite", "rule", "meaning", "let", "anything"])
TEXTS = st.lists(
    st.tuples(HEADS, SPACES, st.lists(TERMS)).map(lambda t: f"({t[0]}{t[1]}{''.join(t[2])})\n")
).map("".join)


@given(TEXTS)
def test_tokens_stay_and_a_second_time_changes_nothing(text: str) -> None:
    once = formatted(Source("my.egg", text))

    assert words(once) == words(text)
    assert formatted(Source("my.egg", once)) == once
    assert all(len(line) <= WIDTH or ";" in line or not line.strip(" ()") for line in deep(once))


def words(text: str) -> list[str]:
    return [token.rstrip() for token in tokens(text) if not token.isspace()]


def deep(text: str) -> list[str]:
    """The lines that are not indented too far to be broken."""
    return [line for line in text.split("\n") if len(line) - len(line.lstrip()) < WIDTH // 2]


def test_the_command_writes_checks_and_shows(tmp_path: Path) -> None:
    path = tmp_path / "my.egg"
    path.write_text('(rewrite  (R.exp x) x :name "e")\n')

    checked = invoke("rules", "fmt", "--check", path)
    assert (checked.exit_code, checked.output) == (1, f"{path} would change\n")
    shown = invoke("rules", "fmt", "--diff", path)
    assert shown.exit_code == 1
    assert shown.output.splitlines()[3:] == [
        '-(rewrite  (R.exp x) x :name "e")',
        '+(rewrite (R.exp x) x :name "e")',
        " ",
    ]
    assert invoke("rules", "fmt", path).output == f"{path} changed\n"
    assert path.read_text() == '(rewrite (R.exp x) x :name "e")\n'
    assert invoke("rules", "fmt", "--check", path).exit_code == 0


def test_a_file_that_does_not_read_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "my.egg"
    path.write_text("(rewrite  (R.exp x\n")

    with pytest.raises(RuleError, match="this '\\(' is never closed"):
        formatted(Source("my.egg", path.read_text()))
    assert invoke("rules", "fmt", path).exit_code == 1
    assert path.read_text() == "(rewrite  (R.exp x\n"
