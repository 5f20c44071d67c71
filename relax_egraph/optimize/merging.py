"""Equal plans of one function become one; an entry function chooses among different plans."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from relax_egraph.ir.expr import Function, GlobalVar
from relax_egraph.ir.names import unused
from relax_egraph.ir.structural import structural_equal
from relax_egraph.optimize.variants import Case, Part
from relax_egraph.passes.dispatch import Decision, Split, dispatch


def merged(name: str, plans: Mapping[Case, Function], reserved: set[str]) -> dict[str, Function]:
    """The function `name` for all `plans`, after the functions that it calls, by name.

    Equal plans need no callee.  The names of callees are not in `reserved`.
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
    names = {k: unused(text, reserved) for k, text in _names(decision, name).items()}
    callees = {
        names[k]: replace(plan, attrs={**plan.attrs, "private": True})
        for k, plan in enumerate(distinct)
    }
    called = [GlobalVar(text, plan.struct_info) for text, plan in callees.items()]
    return {**callees, name: dispatch(distinct[0], decision, called)}


def _decide(
    columns: Sequence[tuple[Part, ...]], plan_of: Mapping[Case, int], prefix: Case = ()
) -> Decision:
    """The plan for each case that begins with `prefix`; equal neighbours share a branch."""
    if len(prefix) == len(columns):
        return plan_of[prefix]
    branches: list[tuple[int | None, Decision]] = []
    for part in columns[len(prefix)]:
        decision = _decide(columns, plan_of, (*prefix, part))
        if branches and branches[-1][1] == decision:
            branches.pop()
        branches.append((part.most, decision))
    if len(branches) == 1:
        return branches[0][1]
    return Split(columns[len(prefix)][0].symbol, tuple(branches))


def _names(decision: Decision, name: str) -> dict[int, str]:
    """A name for each plan, from the first sizes that it is for: ``main_s_2_64``."""
    if isinstance(decision, int):
        return {decision: name}
    names: dict[int, str] = {}
    least = 0
    for most, branch in decision.branches:
        last = "up" if most is None else str(most)
        sizes = last if most == least else f"{least}_{last}"
        names = {**_names(branch, f"{name}_{decision.symbol}_{sizes}"), **names}
        least = 0 if most is None else most + 1
    return names
