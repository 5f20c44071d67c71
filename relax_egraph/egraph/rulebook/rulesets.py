"""The egglog rulesets of a book: one for each rule, and combinations of them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from relax_egraph.egraph.rulebook.calls import demands
from relax_egraph.egraph.rulebook.generate import generated_rules
from relax_egraph.egraph.rulebook.rule import Entry, Rule
from relax_egraph.egraph.rulebook.scope import DEMANDS, LOAD
from relax_egraph.ir.operators import by_operators


def forms_of(
    entries: Iterable[Entry], own: Mapping[str, str]
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The forms of a book, each rule in its own ruleset, and the combined rulesets by name.

    `own` has the rulesets of rules from files; all other rules are generated.  ``lower`` combines
    generated rules only.
    """
    forms: list[str] = []
    members: dict[str, dict[str, None]] = defaultdict(dict)
    for entry in entries:
        if isinstance(entry, Rule):
            ruleset = own.get(entry.name) or f"engine/law/{_numbers()[entry.name]}"
            forms += (f"(ruleset {ruleset})", entry.text_in(ruleset))
            if entry.ruleset != "lower" or entry.name not in own:
                members[entry.ruleset][ruleset] = None
            for demand in demands(entry):
                if demand.ruleset not in members[DEMANDS]:
                    members[DEMANDS][demand.ruleset] = None
                    forms += (f"(ruleset {demand.ruleset})", demand.text)
        elif entry.ruleset and entry.ruleset != LOAD:
            members[entry.ruleset] = {}
        else:
            forms.append(entry.text)
    combined = {
        name: f"(unstable-combined-ruleset {name} {' '.join(rulesets)})"
        for name, rulesets in members.items()
    }
    return tuple(forms), combined


@by_operators(64)
def _numbers() -> Mapping[str, int]:
    """The generated rules, numbered by name."""
    return {rule.name: k for k, rule in enumerate(generated_rules())}
