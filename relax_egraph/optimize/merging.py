"""Plans of one function that are equal become one; of several, an entry calls that which fits."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from relax_egraph.ir.expr import Function, GlobalVar
from relax_egraph.ir.names import unused
from relax_egraph.ir.structural import structural_equal
from relax_egraph.optimize.variants import Case, Part
from relax_egraph.passes.dispatch import Decision, Split, dispatch


def merged(name: str, plans: Mapping[Case, Function], taken: set[str]) -> dict[str, Function]:
    """Function `name`, which does by `plans` what they do; before it those that it calls.

    There are none of these if all plans are equal.  Their names are not among those `taken`.
    """
    distinct: list[Function] = []
    plan_of: dict[Case, int] = {}
    for case, plan in plans.items():
        same = (k for k, known in enumerate(distinct) if structural_equal(known, plan))
        plan_of[case] = next(same, len(distinct))
        if plan_of[case] == len(distinct):
            distinct.append(plan)
    if len(distinct) == 1:
        return {name: distinct[0]}
    columns = [tuple(dict.fromkeys(column)) for column in zip(*plans, strict=True)]
    decision = _decide(columns, plan_of)
    names = {k: unused(text, taken) for k, text in _names(decision, name).items()}
    callees = {
        names[k]: replace(plan, attrs={**plan.attrs, "private": True})
        for k, plan in enumerate(distinct)
    }
    called = [GlobalVar(text, plan.struct_info) for text, plan in callees.items()]
    return {**callees, name: dispatch(distinct[0], decision, called)}


def _decide(
    columns: Sequence[tuple[Part, ...]], plan_of: Mapping[Case, int], before: Case = ()
) -> Decision:
    """Which plan is for each case that begins with `before`; like neighbours are one branch."""
    if len(before) == len(columns):
        return plan_of[before]
    branches: list[tuple[int | None, Decision]] = []
    for part in columns[len(before)]:
        decision = _decide(columns, plan_of, (*before, part))
        if branches and branches[-1][1] == decision:
            branches.pop()
        branches.append((part.most, decision))
    if len(branches) == 1:
        return branches[0][1]
    return Split(columns[len(before)][0].symbol, tuple(branches))


def _names(decision: Decision, name: str) -> dict[int, str]:
    """What each plan is called, by the first sizes that it is for: ``main_s_2_64``."""
    if isinstance(decision, int):
        return {decision: name}
    found: dict[int, str] = {}
    least = 0
    for most, branch in decision.branches:
        last = "up" if most is None else str(most)
        sizes = last if most == least else f"{least}_{last}"
        found = {**_names(branch, f"{name}_{decision.symbol}_{sizes}"), **found}
        least = 0 if most is None else most + 1
    return found
