"""The rulesets that egglog declares for a book: one for each rule, and what combines them."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache

from relax_egraph.egraph.rulebook.calls import demand_name, demands, named
from relax_egraph.egraph.rulebook.forms import Atom, Source
from relax_egraph.egraph.rulebook.generate import generated_forms
from relax_egraph.egraph.rulebook.loader import Entry
from relax_egraph.egraph.rulebook.reader import read
from relax_egraph.egraph.rulebook.scope import DEMANDS, LOAD


def forms_of(
    generated: Iterable[str], entries: Iterable[Entry], own: Mapping[str, str]
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The forms of a book, each rule in a ruleset of its own; and by name what combines these."""
    forms: list[str] = []
    members: dict[str, list[str]] = defaultdict(list)
    for form in generated:
        if (declared := _ruleset(form)) and declared != LOAD:
            members[declared] = []
        elif stated := _IN_RULESET.search(form):
            rule = f"engine/law/{_law_numbers()[form]}"
            members[stated[1]].append(rule)
            forms += (f"(ruleset {rule})", form.replace(stated[0], f":ruleset {rule} :name"))
        else:
            forms.append(form)
    for entry in entries:
        if not isinstance(entry, str):
            rule = own[entry.name]
            forms += (f"(ruleset {rule})", entry.text(rule))
            if entry.ruleset != "lower":  # its rules are the generated ones
                members[entry.ruleset].append(rule)
            for demand in demands(entry.form):
                name = demand_name(demand)
                if name not in members[DEMANDS]:
                    members[DEMANDS].append(name)
                    forms += (f"(ruleset {name})", named(demand, name, name))
        elif declared := _ruleset(entry):
            members[declared] = []
        else:
            forms.append(entry)
    combined = {
        name: f"(unstable-combined-ruleset {name} {' '.join(rulesets)})"
        for name, rulesets in members.items()
    }
    return tuple(forms), combined


_IN_RULESET = re.compile(r":ruleset (\S+) :name")


@cache
def _law_numbers() -> Mapping[str, int]:
    """The generated forms, numbered."""
    return {form: k for k, form in enumerate(generated_forms())}


@cache
def _ruleset(declaration: str) -> str | None:
    """The ruleset that a form declares, if it declares one."""
    if not re.match(r"\(\s*ruleset\b", declaration):
        return None
    (form,) = read(Source("", declaration))
    name = form.items[1]
    return name.text if form.head == "ruleset" and isinstance(name, Atom) else None
