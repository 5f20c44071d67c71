"""Rules as they are tried: alone, each in the ruleset of its part."""

from collections.abc import Mapping

from relax_egraph.egraph.rulebook.forms import Atom, Form, Tree, written
from relax_egraph.egraph.rulebook.guards import expand
from relax_egraph.egraph.rulebook.loader import RuleInfo
from relax_egraph.verify.instances.query import ROOT, Pattern, Signature


def helper_text(rule: RuleInfo) -> str:
    """A rule that deduces what the tried one reads."""
    return rule.text("engine/helping")


def tried_text(pattern: Pattern, signatures: Mapping[str, Signature]) -> str:
    """One direction of the rule, which also deduces what it has ``matched``."""
    if pattern.left is not None and pattern.right is not None:
        kernel = isinstance(pattern.left, Form) and signatures[pattern.left.head].result == "Kernel"
        root = f"(K.store {ROOT})" if kernel else ROOT
        facts = f"(= {ROOT} {written(pattern.left)}) {_facts(pattern)}"
        actions = f"(union {ROOT} {written(pattern.right)})"
    else:
        root, facts = _tensor(pattern.facts, signatures), _facts(pattern)
        actions = " ".join(map(written, pattern.actions))
    rule = f"(rule ({facts}) ({actions} (engine/matched {root})))"
    return f'{expand(rule).text[:-1]} :ruleset engine/trying :name "engine/trying")'


def _facts(pattern: Pattern) -> str:
    return " ".join(map(written, pattern.facts))


def _tensor(facts: tuple[Tree, ...], signatures: Mapping[str, Signature]) -> str:
    """The first variable in `facts` that stands for a tensor."""
    for tree in facts:
        if not isinstance(tree, Form):
            continue
        if tree.head == "=":
            atoms = [i for i in tree.items[1:] if isinstance(i, Atom)]
            sorts = [
                signatures[i.head].result
                for i in tree.items[1:]
                if isinstance(i, Form) and i.head in signatures
            ]
            if atoms and "Tensor" in sorts:
                return atoms[0].text
        known = signatures.get(tree.head)
        for sort, item in zip(known.params if known else (), tree.items[1:], strict=False):
            if sort == "Tensor" and isinstance(item, Atom):
                return item.text
        inner = _tensor(tuple(tree.items[1:]), signatures)
        if inner:
            return inner
    return ""
