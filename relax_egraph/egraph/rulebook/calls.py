"""Calls of engine functions in rules, as demands for their values.

    (rewrite (R.nn.pad (R.permute_dims x p) …) … :when ((= q (inverse-of p))))
    -->
    (rule ((= left-side (R.nn.pad (R.permute_dims x p) …))) ((engine/asked/inverse-of p)))

A function is a table, which rules read like any fact.  Before each iteration the engine computes
the values that the demands ask for, and adds them to the table (`saturation.answers`).
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from relax_egraph.egraph.functions.function import FUNCTIONS, Function
from relax_egraph.egraph.rulebook.forms import (
    Atom,
    Form,
    Tree,
    form_of,
    forms_in,
    is_primitive,
    variables,
    written,
)
from relax_egraph.egraph.rulebook.guards import is_guard
from relax_egraph.egraph.rulebook.rule import Rule

ASKED = "engine/asked/"
"""The prefix of a demand relation: its rows are the arguments for which to compute a function."""


def demanded(function: Function) -> str:
    """The declaration of the demand relation of `function`."""
    return f"(relation {ASKED}{function.name} ({' '.join(sort for _, sort in function.params)}))"


@lru_cache(1 << 12)
def demands(rule: Rule) -> tuple[Rule, ...]:
    """The rules that add demands for the function calls of `rule`, from its other premises."""
    if not any(calls_in(rule.form)):
        return ()
    bodies = [[tree for tree in d.matched if not is_guard(tree)] for d in rule.directions]
    forms = (form for body in bodies for form in _demands(body))
    named = {_name_of(form): form for form in forms}
    return tuple(Rule(name, name, form) for name, form in named.items())


_numbers: dict[str, int] = {}


def _name_of(demand: Form) -> str:
    """A name for a demand, the same in every book of this process."""
    return f"engine/demand/{_numbers.setdefault(written(demand), len(_numbers))}"


def calls_in(tree: Tree) -> Iterator[Form]:
    """The calls of functions in `tree`."""
    return (form for form in forms_in(tree) if form.head in FUNCTIONS)


def _demands(body: Sequence[Tree]) -> Iterator[Form]:
    plain = _matched([tree for tree in body if not any(calls_in(tree))])
    computed = [tree for tree in body if any(calls_in(tree))]
    for tree in computed:
        for call in calls_in(tree):
            needed = _binding(call, plain, [other for other in computed if other is not tree])
            arguments = call.items[1:]
            names = [_name(k, item) for k, item in enumerate(arguments)]
            named = (form_of("=", *pair) for pair in zip(names, arguments, strict=True))
            facts = (*needed, *(f for f in named if isinstance(f.items[2], Form)))
            demand = form_of(form_of(f"{ASKED}{call.head}", *names))
            yield form_of("rule", form_of(*facts), demand)


def _name(k: int, argument: Tree) -> str:
    """The argument itself if it is an atom; else a new variable for its value."""
    return argument.text if isinstance(argument, Atom) else f"engine-argument-{k}"


def _binding(call: Form, plain: Sequence[Tree], computed: Sequence[Tree]) -> list[Tree]:
    """The premises that bind the arguments of `call`: all `plain` ones, and other calls."""
    needed, left = list(plain), list(computed)
    missing = variables([call]) - variables(needed)
    while missing:
        new = [tree for tree in left if variables([tree]) & missing]
        if not new:
            break
        needed += new
        left = [tree for tree in left if tree not in new]
        missing = variables(part for tree in new for part in calls_in(tree)) - variables(needed)
    return needed


def _matched(plain: Sequence[Tree]) -> list[Tree]:
    """The premises of `plain` that match without the value of any function."""
    bound = set[str]()
    while True:
        new = {name for tree in plain for name in _binds(tree, bound)} - bound
        if not new:
            return [tree for tree in plain if variables([tree]) <= bound]
        bound |= new


def _binds(tree: Tree, bound: set[str]) -> set[str]:
    """The variables that a premise binds, if the variables `bound` have values."""
    if isinstance(tree, Atom):
        return set()
    if tree.head != "=":
        inside = {name for item in tree.items[1:] for name in _binds(item, bound)}
        return inside if is_primitive(tree.head) else inside | _atoms(tree)
    known = any(
        variables([side]) <= bound or (isinstance(side, Form) and not is_primitive(side.head))
        for side in tree.items[1:]
    )
    inside = {name for item in tree.items[1:] for name in _binds(item, bound)}
    return inside | _atoms(tree) if known else inside


def _atoms(form: Form) -> set[str]:
    """The variables that are arguments of `form` itself."""
    return variables(item for item in form.items[1:] if isinstance(item, Atom))
