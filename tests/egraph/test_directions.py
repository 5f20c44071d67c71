"""What a rule matches and does, by direction."""

from relax_egraph.egraph.rulebook.forms import written
from tests.support.entries import rule_of


def test_a_birewrite_has_two_directions_of_the_same_premises() -> None:
    rule = rule_of('(birewrite (R.exp x) (R.log y) :when ((= y (R.abs x))) :name "both")')

    forward, back = rule.directions

    assert (forward.name, back.name) == ("both=>", "both<=")
    assert [*map(written, forward.body)] == ["(= left-side (R.exp x))", "(= y (R.abs x))"]
    assert [*map(written, back.body)] == ["(= left-side (R.log y))", "(= y (R.abs x))"]
    assert [*map(written, back.head)] == ["(union left-side (R.exp x))"]
    assert rule.text_in("my") == (
        '(birewrite (R.exp x) (R.log y) :when ((= y (R.abs x))) :ruleset my :name "both")'
    )


def test_the_actions_of_a_rule_are_names_equations_and_rows() -> None:
    actions = "(let e (R.exp x)) (union t e) (even t x) (set (const-scalar e) 1.0) (R.abs e)"
    (direction,) = rule_of(f"(rule ((= t (R.log x))) ({actions}))").directions

    rows = [(r.head, *map(written, r.args), r.value and written(r.value)) for r in direction.rows]

    assert {name: written(term) for name, term in direction.lets.items()} == {"e": "(R.exp x)"}
    assert [(written(a), written(b)) for a, b in direction.unions] == [("t", "e")]
    assert rows == [("even", "t", "x", None), ("const-scalar", "e", "1.0")]
    assert direction.unites
