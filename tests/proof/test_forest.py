"""Equality of terms by equations and congruence, and the chains that explain it."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.egraph.node import Node, scalar_node
from relax_egraph.errors import ProofError
from relax_egraph.proof.chain import chain
from relax_egraph.proof.forest import Forest
from relax_egraph.proof.term import Term, Terms
from relax_egraph.proof.trace import Step, Trace


class Written:
    """A table of terms, read from texts: ``f(a, g(b))``."""

    def __init__(self) -> None:
        self.terms, self.forest = Terms(), Forest()

    def __call__(self, text: str) -> Term:
        name, _, rest = text.partition("(")
        parts, depth, start = list[str](), 0, 0
        for k, letter in enumerate(rest):
            depth += (letter == "(") - (letter == ")")
            if (letter == "," and depth == 0) or depth < 0:
                parts.append(rest[start:k].strip())
                start = k + 1
        return self.terms.term(Node(name.strip(), tuple(self(part) for part in parts if part)))

    def unite(self, rule: str, left: str, right: str) -> None:
        self.forest.unite(self(left), self(right), rule)

    def chain(self, source: str, target: str) -> list[str]:
        steps = chain(self.forest, self.terms, self(source), self(target))
        followed(self(source), self(target), steps)
        return [
            f"{s.rule}{' back' * s.backwards}: {shown(s.before)} = {shown(s.after)}" for s in steps
        ]


def shown(term: Term) -> str:
    inside = ", ".join(map(shown, term.operands))
    return f"{term.op}({inside})" if inside else term.op


def followed(source: Term, target: Term, steps: Sequence[Step]) -> list[Term]:
    """The programs of a trace of `steps`, which must lead to `target`."""
    return list(Trace("main", "gv", source, target, tuple(steps), {}, {}).programs())


def test_an_equation_is_one_step() -> None:
    w = Written()

    w.unite("r", "f(a)", "b")

    assert w.chain("f(a)", "b") == ["r: f(a) = b"]
    assert w.chain("b", "f(a)") == ["r back: b = f(a)"]


def test_what_is_shared_is_rewritten_once() -> None:
    w = Written()

    w.unite("r", "a", "b")
    w.unite("s", "f(b, b)", "c")

    assert w.chain("g(f(a, a), a)", "g(c, b)") == ["r: a = b", "s: f(b, b) = c"]


def test_what_is_to_stay_is_told_by_what_is_around_it() -> None:
    w = Written()

    w.unite("r", "a", "b")

    assert w.chain("f(g(a), a)", "f(g(b), a)") == ["r: g(a) = g(b)"]
    assert w.chain("f(a, a)", "f(b, a)") == ["r: f(a, a) = f(b, a)"]


def test_of_two_ways_the_shorter_one_is_taken() -> None:
    w = Written()

    for rule, left, right in (("r", "a", "b"), ("s", "b", "c"), ("t", "c", "d"), ("u", "a", "d")):
        w.unite(rule, left, right)

    assert w.chain("f(a)", "f(d)") == ["u: a = d"]


def test_a_fifth_and_a_third_power_make_the_first() -> None:
    w = Written()

    w.unite("r", "f(f(f(a)))", "a")
    w.unite("s", "f(f(f(f(f(a)))))", "a")

    assert w.chain("f(a)", "a")


def test_congruences_in_a_row_are_one() -> None:
    w = Written()
    w.unite("r", "a", "b")
    for left, right in (("a", "c"), ("b", "d"), ("c", "e")):
        w.unite("s", left, right)
        w.forest.add(w(f"f({right}, g({right}))"))

    assert w.chain("f(a, g(b))", "f(e, g(d))") == ["s: a = c", "s: c = e", "s: b = d"]


def test_where_many_terms_are_congruent_an_explanation_is_found() -> None:
    w, width = Written(), 24
    leaves = [w(f"x{k}") for k in range(width)]
    level = leaves
    for _ in range(8):
        pairs = [(a, level[k * j % width]) for k, a in enumerate(level) for j in (2, 3)]
        level = [w.terms.term(Node("f", pair)) for pair in pairs[:width]]
        for term in level:
            w.forest.unite(term, w.terms.term(Node("g", term.children[::-1])), "s")
    for a, b in pairwise(leaves):
        w.forest.unite(a, b, "r")

    steps = chain(w.forest, w.terms, level[0], level[-1])

    assert followed(level[0], level[-1], steps)[-1] is level[-1]


def test_a_premise_is_proven_by_what_was_before() -> None:
    w = Written()
    w.unite("r", "f(a)", "f(b)")

    w.forest.unite(w("a"), w("b"), "s", ((w("f(a)"), w("f(b)")),))
    (step,) = chain(w.forest, w.terms, w("g(a)"), w("g(b)"))

    assert (step.rule, [s.rule for s in step.given], step.rules) == ("s", ["r"], ("s", "r"))


def test_terms_that_are_not_equal_have_no_chain() -> None:
    w = Written()
    w.unite("r", "a", "b")

    with pytest.raises(ProofError, match="not known to be equal"):
        chain(w.forest, w.terms, w("f(a)"), w("f(c)"))


def test_zeros_of_both_signs_are_two_terms_and_nan_is_one() -> None:
    terms = Terms()
    scalars = [terms.term(scalar_node(value, "float32")) for value in (0.0, -0.0, float("nan"))]

    assert len(set(scalars)) == 3
    assert terms.term(scalar_node(float("nan"), "float32")) is scalars[2]


def test_a_trace_whose_steps_lead_elsewhere_is_refused() -> None:
    w = Written()
    step = Step("r", w("a"), w("b"))

    with pytest.raises(ProofError, match="step 1, r, changes nothing"):
        followed(w("f(c)"), w("f(c)"), [step])
    with pytest.raises(ProofError, match="1 steps do not lead to the result"):
        followed(w("f(a)"), w("f(a)"), [step])


leaves = st.sampled_from(["a", "b", "c"])
texts = st.recursive(
    leaves,
    lambda inside: st.one_of(
        st.builds("f({})".format, inside), st.builds("g({}, {})".format, inside, inside)
    ),
    max_leaves=6,
)
equations = st.lists(st.tuples(texts, texts), max_size=8)


@settings(max_examples=300, deadline=None)
@given(equations, texts, texts)
def test_every_explanation_is_a_chain_of_equations(
    known: list[tuple[str, str]], source: str, target: str
) -> None:
    w = Written()
    for k, (left, right) in enumerate(known):
        w.unite(str(k), left, right)
    first, last = w(source), w(target)
    w.forest.add(first)
    w.forest.add(last)

    if not w.forest.equal(first, last):
        return
    steps = chain(w.forest, w.terms, first, last)

    programs = followed(first, last, steps)
    assert len(set(programs)) == len(programs)  # it never comes back to where it was
    for step in steps:
        left, right = (w(side) for side in known[int(step.rule)])
        sides = (right, left) if step.backwards else (left, right)
        assert differ_by(step.before, step.after, *sides)


@settings(max_examples=300, deadline=None)
@given(equations, texts, st.lists(st.tuples(st.integers(0, 7), st.booleans()), max_size=6))
def test_what_rewriting_leads_to_is_explained(
    known: list[tuple[str, str]], source: str, applied: list[tuple[int, bool]]
) -> None:
    w = Written()
    for k, (left, right) in enumerate(known):
        w.unite(str(k), left, right)
    program = first = w(source)
    for k, turned in applied:
        if k < len(known):
            sides = [w(side) for side in known[k]]
            program = w.terms.replaced(program, *(sides[::-1] if turned else sides))

    followed(first, program, chain(w.forest, w.terms, first, program))


def differ_by(before: Term, after: Term, left: Term, right: Term) -> bool:
    """Whether `after` is `before` with `right` in some places where `left` is."""
    if before is after or (before is left and after is right):
        return True
    parts = list(zip(before.operands, after.operands, strict=False))
    return (
        before.op == after.op
        and bool(parts)
        and all(differ_by(a, b, left, right) for a, b in parts)
    )
