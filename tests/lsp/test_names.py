"""What is known of the names in a rule file, by itself."""

from textwrap import dedent

from relax_egraph.authoring.names import Names, names_in
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.lsp.completion import completions
from relax_egraph.lsp.cursor import cursor_at
from relax_egraph.lsp.hover import hover
from relax_egraph.lsp.places import definition, references

TEXT = dedent("""\
    (ruleset mine)

    ; (both-of a b): a and b are one
    (relation both-of (Tensor Tensor))

    (rule ((= y (R.add a b))) ((let z (R.exp y)) (both-of z a)) :ruleset mine :name "both")

    (rewrite (R.matmul x w) (R.linear x w (R.none) "") :when ((both-of x w)) :ruleset mine)
    """)


def read(text: str = TEXT) -> Names:
    return names_in(Source("my.egg", text))


def test_every_name_has_a_kind_and_knows_whether_it_is_declared() -> None:
    shown = [f"{n.kind} {n.text}{'!' * n.declares}" for n in read().every]

    assert shown == [
        "ruleset mine!",
        *("table both-of!", "sort Tensor", "sort Tensor"),
        *("variable y", "table R.add", "variable a", "variable b"),
        *("variable z!", "table R.exp", "variable y", "table both-of", "variable z", "variable a"),
        *("ruleset mine", "rule both!"),
        *("table R.matmul", "variable x", "variable w"),
        *("table R.linear", "variable x", "variable w", "table R.none"),
        *("table both-of", "variable x", "variable w", "ruleset mine"),
    ]


def test_a_variable_is_known_in_its_form_only() -> None:
    names = read(TEXT + "(rewrite (R.exp x) x)\n")
    last = names.every[-1]

    assert last.text == "x"
    assert len([*references(names, last, "")]) == 2


def test_a_relation_of_the_book_is_declared_in_its_file() -> None:
    names = read("(rewrite (R.exp x) x :when ((is-nonnegative x)))\n")
    (used,) = (n for n in names.every if n.text == "is-nonnegative")

    place = definition(names, used)

    assert place
    assert place.source.name.endswith("rules/canon.egg")
    assert place.source.text[place.start : place.end] == "is-nonnegative"
    assert len([*references(names, used, "")]) > 10


def test_hovering_says_what_a_name_is() -> None:
    names = read()
    by_text = {n.text: n for n in names.every}

    assert hover(names, by_text["x"], {}) == "variable `x`: Tensor, as x of `R.matmul`"
    assert hover(names, by_text["mine"], {}) == "ruleset `mine` of 2 rules"
    assert hover(names, by_text["R.none"], {}).startswith(
        "```egg\n(R.none) → Tensor\n```\n\nAn operand that is left out."
    )


def offered(before: str) -> list[str]:
    source = Source("my.egg", before)
    return [one.word for one in completions(cursor_at(source, len(before)), read(before))]


def test_what_may_stand_at_a_place_is_offered() -> None:
    assert offered("(")[:2] == ["birewrite", "constructor"]
    assert offered("; a comment") == []
    assert offered("(rewrite (R.add x y) ")[:2] == ["x", "y"]
    assert {":when", ":name", ":ruleset"} <= {*offered("(rewrite (R.add x y) x ")}
    assert ":when" not in offered("(rule ((= x y)) () ")
    assert offered('(rewrite (R.astype x "flo')[:1] == ['"bfloat16"']
    assert offered("(rewrite (R.sum x axes ")[:3] == ["axes", "false", "true"]
    assert offered("(rewrite (R.add x y) x :ruleset mo")[:1] == ["algebra"]
    assert "R.exp" in offered("(rewrite (R.add x (")


def test_terms_of_the_sort_that_is_needed_are_first() -> None:
    words = offered("(rewrite (R.reshape x (")

    assert words.index("shape-of") < words.index("R.add")


def test_the_cursor_knows_the_forms_around_it() -> None:
    text = '(rewrite (R.add x "a b" (R.exp'
    cursor = cursor_at(Source("my.egg", text), len(text))

    assert [(form.head, form.items) for form in cursor.around] == [
        ("rewrite", 0),
        ("R.add", 2),
        ("", -1),
    ]
    assert (cursor.word, cursor.is_head, cursor.variables) == ("R.exp", True, ("x",))
