"""Checks that rules hide no value: each keeps a node from which it can be computed.

``:subsume`` and ``:demand`` hide the left side of a rewrite in favour of the right side.  A rewrite
whose left side matches its own right side hides both:

    (rewrite (R.add x y) (R.add y x) :subsume)
"""

from relax_egraph.egraph.rulebook.forms import RUNS, Atom, Form, Source, Tree, is_literal, written

_REFUSED = {
    "panic": ("it would end the run", "a fact in the rule's body can keep it from matching"),
    **dict.fromkeys(
        ("delete", "subsume"),
        (
            "it takes away what a program may need",
            "rules add to what is known; :subsume of a rewrite hides its left side",
        ),
    ),
}
_COMMANDS = frozenset(RUNS) - {"let", "set", "union", *_REFUSED}


def check_hidden(form: Form, source: Source) -> None:
    """Raise `RuleError` for a rewrite, without conditions, that hides its own right side."""
    options = [item for item in form.items[3:] if isinstance(item, Atom)]
    hides = next((o for o in options if o.text == ":subsume"), None)
    if hides and all(o.text != ":when" for o in options):
        left, right = form.items[1:3]
        if _matches(left, right, {}):
            note = "no program would be left; a rewrite without :subsume keeps both sides"
            message = f"the left side matches {written(right)}, too, and :subsume hides both"
            raise source.error(hides, message, note)


def check_action(action: Form, source: Source) -> None:
    """Raise `RuleError` for an action that deletes nodes or facts, or is a command."""
    if action.head in _REFUSED:
        why, note = _REFUSED[action.head]
        raise source.error(action, f"{action.head} is not allowed: {why}", note)
    if action.head in _COMMANDS:
        note = "what a rule does is union, set, let, or a fact"
        raise source.error(action, f"{action.head} is a command, and no action of a rule", note)


def _matches(pattern: Tree, term: Tree, known: dict[str, str]) -> bool:
    """Whether `pattern` matches `term`; `known` has the texts that its variables match."""
    if isinstance(pattern, Atom):
        if pattern.text == "_":
            return True
        if is_literal(pattern.text):
            return pattern.text == written(term)
        return known.setdefault(pattern.text, written(term)) == written(term)
    return (
        isinstance(term, Form)
        and term.head == pattern.head
        and len(term.items) == len(pattern.items)
        and all(
            _matches(p, t, known) for p, t in zip(pattern.items[1:], term.items[1:], strict=True)
        )
    )
