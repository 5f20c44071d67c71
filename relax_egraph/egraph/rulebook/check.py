"""The check of a rule before egglog sees it: options, names, arities, sorts, variables.

egglog checks everything once more.  The messages of this check are better for common mistakes:
they name the operator's arguments, the nearest known name, or the place of the other use.
"""

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace

from relax_egraph.egraph.rulebook.forms import (
    Atom,
    Form,
    Source,
    Tree,
    applied,
    atoms,
    forms_in,
    matched_in,
    premises_of,
    sort_of_literal,
    symbols,
    variables,
    written,
)
from relax_egraph.egraph.rulebook.guards import GUARD_NAMES, is_guard
from relax_egraph.egraph.rulebook.hidden import check_action, check_hidden
from relax_egraph.egraph.rulebook.rule import ROOT
from relax_egraph.egraph.rulebook.scope import DEMAND, ENGINE_RULESETS, Scope, check_own, near
from relax_egraph.errors import RuleError
from relax_egraph.rules import FAMILIES

_OPTIONS = {
    "rewrite": (":when", ":subsume", ":demand", ":ruleset", ":name"),
    "birewrite": (":when", ":ruleset", ":name"),
    "rule": (":ruleset", ":name"),
}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a rule; `form` is the rule without ruleset and name.

    A rewrite that is demanded hides its left side, in the ruleset `DEMAND`, before others run.
    """

    form: Form
    ruleset: Atom | None = None
    name: Atom | None = None


def options_of(form: Form, source: Source) -> Options:
    """The options of a rewrite, birewrite or rule; raises `RuleError`."""
    known = _OPTIONS[form.head]
    items = list(form.items[3:])
    values: dict[str, Tree] = {}
    kept = [*form.items[:3]]
    demand: Atom | None = None
    while items:
        option = items.pop(0)
        if not isinstance(option, Atom) or option.text not in known:
            shown = _shown(option)
            message = f"{shown} is no option of {form.head}, which has {', '.join(known)}"
            raise source.error(option, message, near(shown, known))
        if option.text in (":subsume", ":demand"):
            kept.append(replace(option, text=":subsume"))
            demand = demand or (option if option.text == ":demand" else None)
            continue
        if not items:
            raise source.error(option, f"{option.text} needs a value")
        values[option.text] = value = items.pop(0)
        if option.text == ":when":
            kept += [option, value]
    when, ruleset, name = values.get(":when"), values.get(":ruleset"), values.get(":name")
    if when is not None and not (
        isinstance(when, Form) and all(isinstance(fact, Form) for fact in when.items)
    ):
        note = "one fact is written :when ((= s (shape-of x)))"
        raise source.error(when, ":when needs a list of facts", note)
    if name is not None and not (isinstance(name, Atom) and name.text.startswith('"')):
        raise source.error(name, ':name needs a name in quotes: :name "add-zero"')
    if ruleset is not None and not isinstance(ruleset, Atom):
        raise source.error(ruleset, ":ruleset needs the name of a ruleset")
    if demand and ruleset:
        note = "it runs before all others; leave :ruleset out"
        raise source.error(ruleset, f":demand is the ruleset {DEMAND}", note)
    ruleset = replace(demand, text=DEMAND) if demand else ruleset
    return Options(replace(form, items=tuple(kept)), ruleset, name)


def check_rule(form: Form, source: Source, scope: Scope) -> Options:
    """Check a rewrite, birewrite or rule; raises one `RuleError` with all errors of the form."""
    options = options_of(form, source)
    check = _RuleCheck(source, scope)
    errors = [*check.unknown(form)]
    try:
        check.names(form, options)
    except RuleError as error:
        errors.append(error)
    if errors:
        first, *others = sorted(errors, key=lambda e: (e.span.line, e.span.column))
        raise first.with_others(others)
    check.guards(form)
    check.calls(form)
    if form.head == "rule":
        check.rule(form)
    else:
        check.rewrite(form)
    return options


class _RuleCheck:
    """The check of one rule; `uses` has the sort of each variable, and the use that shows it."""

    def __init__(self, source: Source, scope: Scope) -> None:
        self.source, self.scope = source, scope
        self.uses: dict[str, tuple[str, Tree]] = {}

    def unknown(self, form: Form) -> Iterator[RuleError]:
        """An error for each unknown operator in `form`."""
        known = self.scope.declarations
        for inner in forms_in(form):
            if inner.head.startswith(("R.", "K.")) and inner.head not in known:
                yield self.error(inner, f"unknown operator {inner.head}", near(inner.head, known))

    def names(self, form: Form, options: Options) -> None:
        ruleset, name = options.ruleset, options.name
        if ruleset and ruleset.text in ENGINE_RULESETS and not self.scope.trusted:
            note = "it runs without a budget, or in no phase; choose a ruleset of your own"
            raise self.error(ruleset, f"ruleset {ruleset.text} is the engine's own", note)
        if ruleset and ruleset.text not in (*self.scope.rulesets, DEMAND):
            known = near(ruleset.text, self.scope.rulesets)
            note = " ".join(filter(None, (known, f"(ruleset {ruleset.text}) above declares it")))
            raise self.error(ruleset, f"unknown ruleset {ruleset.text}", note)
        if taken := next((a for a in atoms(form) if a.text == ROOT), None):
            note = "where the engine reads a rewrite as a rule, that is its whole left side"
            raise self.error(taken, f"no variable is named {ROOT}", note)
        text = name.text.strip('"') if name else ""
        if name:
            check_own(name, self.source)
        if name and text.endswith(("=>", "<=")):
            note = "the directions of a birewrite are reported so"
            raise self.error(name, f"{text} ends in {text[-2:]}, as no name of a rule does", note)
        if name and text in self.scope.rules:
            place = self.scope.rules[text]
            note = f"the first is at {place}" if place else "the first is a generated rule"
            raise self.error(form, f"a second rule is named {text}", note)
        if name and text in FAMILIES:
            note = "choose another: `without` leaves out rules and families by name"
            raise self.error(name, f"{text} is the name of a family", note)

    def guards(self, form: Form) -> None:
        """Check that guards are premises, over variables that other premises bind."""
        guards = [*filter(is_guard, premises_of(form))]
        for misplaced in applied(form, GUARD_NAMES):
            if misplaced not in guards:
                note = "a guard is a premise: it stands in :when, or in a rule's body"
                raise self.error(misplaced, f"{misplaced.head} is a guard", note)
        for matched in matched_in(form):
            bound = variables(tree for tree in matched if not is_guard(tree))
            for guard in guards:
                self._bound(guard, bound, "a guard only asks about what is matched besides")

    def calls(self, form: Form) -> None:
        """Check that functions are called in premises only."""
        facts = premises_of(form)
        called = [call for fact in facts for call in applied(fact, self.scope.functions)]
        for misplaced in applied(form, self.scope.functions):
            if misplaced not in called:
                note = f"bind it first: :when ((= value {written(misplaced)}))"
                message = f"{misplaced.head} is computed of what is matched, and only in a premise"
                raise self.error(misplaced, message, note)

    def rewrite(self, form: Form) -> None:
        if len(form.items) < 3:
            raise self.error(form, f"{form.head} needs two sides")
        left, right = form.items[1], form.items[2]
        for side in (left, right)[: 2 if form.head == "birewrite" else 1]:
            if not isinstance(side, Form):
                needs = "needs an operator that is applied, not a variable or literal"
                raise self.error(side, f"this side of the {form.head} {needs}")
        sort = self.sort(left, None)
        premises = premises_of(form)
        for fact in premises:
            self.sort(fact, None)
        other = self.sort(right, sort)
        for side in (right, left)[: 2 if form.head == "birewrite" else 1]:
            self._makes(side)
        if sort and other and other != sort:
            sorts = f"{_shown(left)} is {_a(sort)}, {_shown(right)} is {_a(other)}"
            raise self.error(right, f"the two sides differ in sort: {sorts}")
        bound = variables([left, *premises])
        self._bound(right, bound, "it occurs neither on the left side nor in :when")
        if form.head == "birewrite":
            back = variables([right, *premises])
            self._bound(left, back, "it occurs neither on the right side nor in :when")
        check_hidden(form, self.source)

    def rule(self, form: Form) -> None:
        body, head = (*form.items[1:3], None, None)[:2]
        if not (isinstance(body, Form) and isinstance(head, Form)):
            raise self.error(form, "rule needs a list of facts, then a list of actions")
        for fact in body.items:
            self.sort(fact, None)
        bound = variables(body.items)
        for action in head.items:
            self._action(action, bound)

    def _action(self, action: Tree, bound: set[str]) -> None:
        if not isinstance(action, Form):
            raise self.error(action, f"{_shown(action)} is no action")
        why = "it does not occur in the rule's body"
        if not self.scope.trusted:
            check_action(action, self.source)
        self._writes(action)
        match action.head, action.items[1:]:
            case "let", [Atom(text=name), value]:
                self._bound(value, bound, why)
                sort = self.sort(value, None)
                if sort:
                    self.uses[name] = (sort, action.items[1])
                bound.add(name)
            case (("set" | "union"), [target, value]):
                self._bound(action, bound, why)
                sort = self.sort(target, None)
                other = self.sort(value, sort)
                if sort and other and other != sort:
                    raise self._ill_sorted(value, other, f"{action.head} of {_shown(target)}", sort)
            case _, values:
                self._bound(action, bound, why)
                for value in values if action.head in ("delete", "subsume") else (action,):
                    self.sort(value, None)

    @property
    def closed(self) -> Set[str]:
        """The facts to which the rule may not add: of a user, those that the engine deduces."""
        return frozenset() if self.scope.trusted else self.scope.closed

    def _writes(self, action: Form) -> None:
        """Check that a user's rule does not write to a fact that the engine deduces."""
        changed = action.head in ("set", "delete", "subsume")
        target = action.items[1] if changed and len(action.items) > 1 else action
        if isinstance(target, Form) and target.head in self.closed:
            raise self._of_engine(action, target.head)
        self._makes(action)

    def _makes(self, tree: Tree) -> None:
        """Check that a term that a user's rule makes is, or has in it, no fact of the engine."""
        for form in forms_in(tree):
            declared = self.scope.declarations.get(form.head)
            if form.head in self.closed and (declared is None or declared.result == "Unit"):
                raise self._of_engine(form, form.head)

    def _of_engine(self, tree: Tree, name: str) -> RuleError:
        note = "rules read it; it is deduced of every value, and no rule adds to it"
        return self.error(tree, f"{name} is a fact of the engine", note)

    def sort(self, tree: Tree, expected: str | None) -> str | None:
        """The sort of `tree`, or ``None`` if only egglog can infer it."""
        if isinstance(tree, Atom):
            return self._atom(tree, expected)
        if tree.head == "=":
            known: str | None = None
            for item in tree.items[1:]:
                sort = self.sort(item, known)
                if known and sort and sort != known:
                    raise self._ill_sorted(item, sort, "this =", known)
                known = sort or known
            for item in tree.items[1:]:
                self.sort(item, known)
            return None
        declared = self.scope.declarations.get(tree.head)
        if declared is None:
            for item in () if tree.head == "unstable-fn" else tree.items[1:]:
                self.sort(item, None)
            return None
        arguments = tree.items[1:]
        if (count := len(declared.params)) != len(arguments):
            plural = "argument" if count == 1 else "arguments"
            message = f"{tree.head} takes {count} {plural}, got {len(arguments)}"
            raise self.error(tree, message, f"it is written {declared.usage}")
        for argument, param in zip(arguments, declared.params, strict=True):
            sort = self.sort(argument, param.sort)
            if sort is not None and sort != param.sort:
                raise self._ill_sorted(argument, sort, f"{param.name} of {tree.head}", param.sort)
        return declared.result

    def _atom(self, atom: Atom, expected: str | None) -> str | None:
        if sort := sort_of_literal(atom.text):
            return sort
        if atom.text == "_":
            return expected
        if atom.text in self.uses:
            return self.uses[atom.text][0]
        if expected is not None:
            self.uses[atom.text] = (expected, atom)
        return expected

    def _bound(self, tree: Tree, bound: set[str], why: str) -> None:
        for atom in symbols(tree):
            if atom.text not in bound:
                raise self.error(atom, f"{atom.text} is unbound: {why}")

    def _ill_sorted(self, argument: Tree, sort: str, place: str, needed: str) -> RuleError:
        shown = _shown(argument)
        note = ""
        if isinstance(argument, Atom) and argument.text in self.uses:
            use = self.source.span(self.uses[argument.text][1].start)
            note = f"it is used as {_a(sort)} at {use}"
        elif needed == "Shape":
            note = 'a shape is written (vec-of (DimSym "n") (DimSym "4"))'
        elif needed == "Dim":
            note = 'a dimension is written (DimSym "8")'
        elif (sort, needed) == ("i64", "f64"):
            note = f"write {shown}.0"
        return self.error(argument, f"{place} needs {_a(needed)}, {shown} is {_a(sort)}", note)

    def error(self, tree: Tree, message: str, note: str = "") -> RuleError:
        return self.source.error(tree, message, note)


def _shown(tree: Tree) -> str:
    return tree.text if isinstance(tree, Atom) else f"({tree.head} …)"


def _a(sort: str) -> str:
    return f"an {sort}" if sort in ("i64", "f64", "Axes") else f"a {sort}"
