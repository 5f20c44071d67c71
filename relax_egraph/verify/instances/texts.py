"""The rule for a trial: one direction of a rule, with a record of its matches."""

from collections.abc import Mapping
from dataclasses import replace

from relax_egraph.egraph.rulebook.forms import Atom, Form, Tree, form_of
from relax_egraph.egraph.rulebook.rule import ROOT, Direction, Rule
from relax_egraph.egraph.rulebook.vocabulary import Declaration


def tried_rule(direction: Direction, declarations: Mapping[str, Declaration]) -> Rule:
    """A rule of `direction` alone, which also adds each match to the relation ``matched``."""
    root: Tree | str
    if isinstance(direction.left, Form):
        kernel = declarations[direction.left.head].result == "Kernel"
        root = form_of("K.store", ROOT) if kernel else ROOT
    else:
        root = _tensor(direction.premises, declarations)
    head = (*direction.head, form_of("engine/matched", root))
    form = form_of("rule", form_of(*direction.body), form_of(*head))
    return replace(direction.rule, name="engine/trying", form=form)


def _tensor(facts: tuple[Tree, ...], declarations: Mapping[str, Declaration]) -> str:
    """The first variable in `facts` that stands for a tensor."""
    for tree in facts:
        if not isinstance(tree, Form):
            continue
        if tree.head == "=":
            atoms = [i for i in tree.items[1:] if isinstance(i, Atom)]
            sorts = [
                declarations[i.head].result
                for i in tree.items[1:]
                if isinstance(i, Form) and i.head in declarations
            ]
            if atoms and "Tensor" in sorts:
                return atoms[0].text
        known = declarations.get(tree.head)
        for sort, item in zip(known.sorts if known else (), tree.items[1:], strict=False):
            if sort == "Tensor" and isinstance(item, Atom):
                return item.text
        inner = _tensor(tuple(tree.items[1:]), declarations)
        if inner:
            return inner
    return ""
