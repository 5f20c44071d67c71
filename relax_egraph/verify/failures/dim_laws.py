"""Verdicts on rules that equate dimensions: a proof by sympy, or refuting numbers."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from relax_egraph.egraph.rulebook.forms import Form, Tree, variables, written
from relax_egraph.egraph.rulebook.rule import Direction
from relax_egraph.egraph.rulebook.vocabulary import DIM_OPERATORS
from relax_egraph.errors import RelaxEgraphError
from relax_egraph.ir import dims
from relax_egraph.verify.instances.primitives import Fails, compute
from relax_egraph.verify.instances.query import literal_of
from relax_egraph.verify.verdict import Verdict, silent

_HEADS = ("DimSym", *DIM_OPERATORS)
_NUMBERS = (1, 2, 3, 0, 5)
_UNPROVED = "a law of dimensions, which sympy does not prove and no small numbers refute"


def is_of_dims(pattern: Direction) -> bool:
    """Whether `pattern` rewrites dimensions."""
    return isinstance(pattern.left, Form) and pattern.left.head in _HEADS


def verdict_on_dims(pattern: Direction, trials: int) -> Verdict:
    """The verdict on a rule about dimensions; a proof counts as `trials` instances."""
    left, right = pattern.left, pattern.right
    rule = pattern.rule
    if left is None or right is None:
        return silent(rule, _UNPROVED)
    names = sorted(variables((left, right)))
    for numbers in product(_NUMBERS, repeat=len(names)):
        values = dict(zip(names, numbers, strict=True))
        a, b = _value(left, values), _value(right, values)
        if a is not None and a != b and all(_value(f, values) for f in pattern.premises):
            numbers_text = ", ".join(f"{name} = {number}" for name, number in values.items())
            sides = f"{written(left)} is {a}, {written(right)} is {b}"
            return replace(silent(rule, f"for {numbers_text} {sides}"), needs="unsound", fired=1)
    symbols = {name: dims.symbol(f"s{k}") for k, name in enumerate(names)}
    a, b = _value(left, symbols), _value(right, symbols)
    if a is None or b is None or not dims.equal(a, b):
        return silent(rule, _UNPROVED)
    return Verdict(rule.name, rule.span, rule.float_class, "exact", trials, proved=True)


def _value(tree: Tree, values: Mapping[str, Any]) -> Any:
    """The value of a term of dimensions; ``None`` if it has none, or is another kind of term."""
    try:
        if isinstance(tree, Form):
            head = "dim-equal" if tree.head == "=" else tree.head
            return compute(head, tuple(_value(item, values) for item in tree.items[1:]))
        literal = literal_of(tree.text)
        return values[tree.text] if literal is None else literal.value
    except (Fails, RelaxEgraphError, KeyError):
        return None
