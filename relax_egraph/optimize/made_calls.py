"""The calls of functions below the graph that rules of a user make: their functions and prices."""

from collections.abc import Collection, Iterator
from functools import lru_cache

from relax_egraph.egraph.engine import RuleBook
from relax_egraph.egraph.rulebook.forms import (
    Atom,
    Form,
    Source,
    applied,
    forms_in,
    sort_of_literal,
)
from relax_egraph.egraph.rulebook.installed import installed
from relax_egraph.egraph.rulebook.reader import read_all
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.rulebook.scope import DEMAND
from relax_egraph.egraph.rulebook.shorthand import CALL_HEADS
from relax_egraph.extract import Prices
from relax_egraph.ir.expr import ExternFunc, Function
from relax_egraph.ir.module import IRModule
from relax_egraph.rules import Rules


def check_made_calls(book: RuleBook, module: IRModule, prices: Prices) -> tuple[str, ...]:
    """The rules of installed packages in `book` that make calls which cannot be judged.

    Such a call is of a function without a price, unless the rule is demanded, or of a loop function
    that `module` does not have.  Raises ``ValueError`` if a rule of the user makes one.
    """
    packages = {name for name, _ in installed().files}
    left_out: list[str] = []
    for rule in book.rules:
        problem = next(_problems(rule, module, prices), "")
        if problem and rule.span.file not in packages:
            raise ValueError(f"rule {rule.name} calls {problem}")
        left_out += [rule.name] if problem else []
    return tuple(left_out)


def with_loop_functions(prepared: IRModule, module: IRModule, named: Collection[str]) -> IRModule:
    """`prepared` with the loop functions of `module` that nothing calls, if rules name any."""
    if not named:
        return prepared
    loops = {n: f for n, f in module.functions.items() if not isinstance(f, Function)}
    return IRModule({**loops, **prepared.functions})


def named_loops(rules: Rules) -> frozenset[str]:
    """The loop functions that `rules` of a user name, which are called by these names."""
    return frozenset[str]().union(*(_named_in(file, text) for file, text in rules.files))


@lru_cache(64)
def _named_in(file: str, text: str) -> frozenset[str]:
    forms = (form for form in read_all(Source(file, text)) if isinstance(form, Form))
    calls = (call for form in forms for call in applied(form, ("R.call_tir",)))
    return frozenset(name for call in calls if (name := _callee(call)))


def stated_functions(book: RuleBook) -> frozenset[ExternFunc]:
    """The packed functions that rules of a user say something about: equal to what, or of what."""
    of_user = (rule for rule in book.rules if rule.name in book.of_user)
    calls = (call for rule in of_user for call in applied(rule.form, ("R.call_pure_packed",)))
    return frozenset(ExternFunc(name) for call in calls if (name := _callee(call)))


def _problems(rule: Rule, module: IRModule, prices: Prices) -> Iterator[str]:
    """What is wrong with the calls that `rule` makes; each begins with the name of the function."""
    loops = [n for n, f in module.functions.items() if not isinstance(f, Function)]
    for call, name in _made(rule):
        if call.head == "R.call_tir" and name not in loops:
            yield f"{name}; the loop functions of the module are: {', '.join(loops) or 'none'}"
        if name not in prices.calls and rule.ruleset != DEMAND:
            note = f'pass prices=rx.Prices(calls={{"{name}": …}}), in seconds'
            yield f"{name}, which has no price; {note}"


def _made(rule: Rule) -> Iterator[tuple[Form, str]]:
    """The calls that `rule` makes, each with the name of the function."""
    made = (tree for d in rule.directions for tree in (d.right, *d.actions) if tree is not None)
    for form in (form for tree in made for form in forms_in(tree)):
        if form.head in CALL_HEADS and (name := _callee(form)):
            yield form, name


def _callee(call: Form) -> str:
    """The function that a call in a rule names; empty if it is a variable."""
    name = call.items[1] if len(call.items) > 1 else None
    is_text = isinstance(name, Atom) and sort_of_literal(name.text) == "String"
    return name.text.strip('"') if isinstance(name, Atom) and is_text else ""
