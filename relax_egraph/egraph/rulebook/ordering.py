"""Premises in an order that egglog can evaluate: what computes stands behind what it needs.

    ((= v (R.mean x axes true)) (= axes (vec-of last)) (= last (- (rank-of x) 1)))
    -->
    ((= v (R.mean x axes true)) (= last (- (rank-of x) 1)) (= axes (vec-of last)))

Egglog joins tables in any order, and then evaluates primitives in the order of the rule: it panics
at one whose argument a later premise computes.  Rules that need no change have none, and those of
the book need none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from relax_egraph.egraph.rulebook.forms import (
    Atom,
    Form,
    Tree,
    form_of,
    is_primitive,
    premises_in,
    variables,
)
from relax_egraph.egraph.rulebook.guards import is_guard, matched_names


def in_order(rule: Form, root: str) -> Form:
    """`rule` with its premises in order.

    A rewrite whose left side computes what a premise defines becomes a rule, in which `root` stands
    for the left side.
    """
    premises = premises_in(rule)
    if premises is None:
        return rule
    left = rule.items[1] if rule.head == "rewrite" else None
    facts = [tree for tree in premises.items if isinstance(tree, Form)]
    body = facts if left is None else [form_of("=", root, left, at=left.start), *facts]
    ordered = _ordered(body)
    if ordered == body:
        return rule
    if left is not None and ordered[0] == body[0]:
        ordered, left = ordered[1:], None
    if left is None:
        changed = replace(premises, items=tuple(ordered))
        return replace(rule, items=tuple(changed if i is premises else i for i in rule.items))
    if any(isinstance(item, Atom) and item.text == ":subsume" for item in rule.items):
        return rule
    union = form_of("union", root, rule.items[2])
    return form_of("rule", form_of(*ordered), form_of(union), at=rule.start)


def _ordered(body: Sequence[Form]) -> list[Form]:
    """`body`, in which a premise follows those that compute what its primitives need."""
    known = matched_names(body)
    rest, ordered = list(body), list[Form]()
    while rest:
        ready = next((f for f in rest if known.issuperset(_needed(f))), rest[0])
        rest.remove(ready)
        ordered.append(ready)
        known |= variables([ready])
    return ordered


def _needed(tree: Tree) -> Iterator[str]:
    """The variables that primitives in a premise read; of a guard, all."""
    if is_guard(tree):
        yield from variables([tree])
    elif isinstance(tree, Form):
        if is_primitive(tree.head) and tree.head != "=":
            yield from variables(item for item in tree.items[1:] if isinstance(item, Atom))
        for item in tree.items[1:]:
            yield from _needed(item)
