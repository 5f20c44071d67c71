"""Which premises a proven rule needs, and the rule that assumes no more than that.

Each premise in turn is left out, or a comparison in it loosened.  What is proven then, and what
numpy does not refute, is kept: the rule that is left is as general as single steps make it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Form, Tree, heads, premises_of, written
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.rulebook.weaker import looser, replaced, without
from relax_egraph.errors import RuleError
from relax_egraph.prove.prove import prove
from relax_egraph.prove.refutation import TRIALS
from relax_egraph.prove.unfolding import STEERING
from relax_egraph.verify.check import check_rules

Need: TypeAlias = Literal["needed", "not needed", "looser", "open"]


@dataclass(frozen=True, slots=True)
class Premise:
    """Whether a rule needs a premise.

    It is ``needed`` if numpy refutes the rule without it, and ``not needed`` if that is proven.  It
    may be ``looser`` if the rule is proven with `instead`.  Else it is ``open``: `reason` is the
    step that a proof without it misses.
    """

    tree: Tree
    need: Need
    reason: str = ""
    instead: Tree | None = None

    def as_dict(self) -> dict[str, Any]:
        """The fields for JSON output."""
        instead = None if self.instead is None else written(self.instead)
        found = {"premise": written(self.tree), "need": self.need, "reason": self.reason}
        return {**found, "instead": instead}

    def __str__(self) -> str:
        match self.need:
            case "looser":
                assert self.instead is not None
                return f"{written(self.tree)} may be {written(self.instead)}"
            case "open":
                return f"whether {written(self.tree)} is needed is open: {self.reason}"
            case _:
                reason = f": {self.reason}" if self.reason else ""
                return f"{written(self.tree)} is {self.need}{reason}"


def premises_needed(rule: Rule, book: RuleBook) -> tuple[Premise, ...]:
    """What a proven rule needs of its premises, each beside those of the others that are needed.

    Premises that bind variables, or steer the engine, are not among them.
    """
    form, found = rule.form, list[Premise]()
    todo = [t for t in premises_of(form) if not STEERING.intersection(heads(t))]
    while todo:
        binding: list[Tree] = []
        for tree in todo:
            number = premises_of(form).index(tree)
            premise = _tried(rule, tree, without(form, number), book)
            if premise is None:
                binding.append(tree)
                continue
            if premise.need == "not needed":
                form = without(form, number)
            elif loose := next(_loosened(rule, form, number, book), None):
                premise, form = loose
            found.append(premise)
        # what a premise binds may be read by none that is left
        todo = binding if len(binding) < len(todo) else []
    return tuple(sorted(found, key=lambda p: p.tree.start))


def _loosened(
    rule: Rule, form: Form, number: int, book: RuleBook
) -> Iterator[tuple[Premise, Form]]:
    """A premise with looser comparisons that do, and the form of the rule with it."""
    tree = premises_of(form)[number]
    for _, other in looser(form, number):
        tried = _tried(rule, tree, other, book)
        if tried is not None and tried.need == "not needed":
            yield Premise(tree, "looser", instead=premises_of(other)[number]), other


def _tried(rule: Rule, tree: Tree, form: Form, book: RuleBook) -> Premise | None:
    """Whether `form` shows that a premise is not needed; ``None`` if it is no rule."""
    name = f"{rule.name}-weaker"
    try:
        weaker = replaced(book, rule, form, name)
    except RuleError:
        return None
    (checked,) = check_rules(weaker, [name], trials=TRIALS)
    if checked.counterexample is not None:
        return Premise(tree, "needed", checked.counterexample.difference.problem)
    verdict = prove(replace(rule, form=form), book)
    if verdict.status == "proven":
        return Premise(tree, "not needed")
    if verdict.status == "refuted":
        return Premise(tree, "needed")
    return Premise(tree, "open", verdict.reason)
