"""Alternatives in patterns: a rule for each.

    (rewrite (R.nn.relu (or (R.add x y) (R.subtract x y))) …  :name "relu-of-sum")
    -->
    (rewrite (R.nn.relu (R.add x y)) …       :name "relu-of-sum/1")
    (rewrite (R.nn.relu (R.subtract x y)) …  :name "relu-of-sum/2")

A premise may be an ``or`` of premises.  An ``or`` of truth values is egglog's own, and stays.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product

from relax_egraph.egraph.rulebook.forms import Atom, Form, Source, Tree, forms_in, premises_of

_MOST = 64


def alternatives(rule: Form, source: Source) -> tuple[Form, ...]:
    """`rule` for each choice among its alternatives; raises `RuleError`."""
    if all(form.head != "or" for form in forms_in(rule)):
        return (rule,)
    choice = _Choice(premises_of(rule))
    made = rule.items[2:3] if rule.head in ("rewrite", "rule") else ()
    for form in (form for tree in made for form in forms_in(tree)):
        if choice.is_one(form):
            note = "what a rule makes is one term; write two rules"
            raise source.error(form, "or chooses among what is matched", note)
    every = list(choice.variants(rule))
    if len(every) > _MOST:
        raise source.error(rule, f"these alternatives are {len(every)} rules, {_MOST} at most")
    if len(every) == 1:
        return (rule,)
    return tuple(_numbered(v, k) for k, v in enumerate(every, 1) if isinstance(v, Form))


class _Choice:
    """The choices in a rule with these premises."""

    def __init__(self, premises: tuple[Tree, ...]) -> None:
        self._premises = {id(premise) for premise in premises}

    def is_one(self, form: Form) -> bool:
        """Whether a form is a choice among terms, or among premises."""
        terms = (item for item in form.items[1:] if isinstance(item, Form))
        of_terms = any(term.head.startswith(("R.", "K.")) for term in terms)
        return form.head == "or" and (of_terms or id(form) in self._premises)

    def variants(self, tree: Tree) -> Iterator[Tree]:
        """`tree` for each choice."""
        if isinstance(tree, Atom):
            yield tree
        elif self.is_one(tree):
            for item in tree.items[1:]:
                yield from self.variants(item)
        else:
            for items in product(*(list(self.variants(item)) for item in tree.items)):
                yield replace(tree, items=items)


def _numbered(rule: Form, number: int) -> Form:
    """`rule` with `number` behind its name, if it has one."""
    items = list(rule.items)
    for k, (option, name) in enumerate(pairwise(items)):
        if isinstance(option, Atom) and option.text == ":name" and isinstance(name, Atom):
            text = name.text.strip('"')
            items[k + 1] = replace(name, text=f'"{text}/{number}"')
    return replace(rule, items=tuple(items))
