"""What a name of a rule file is, in Markdown."""

from collections.abc import Iterator, Mapping

from relax_egraph.authoring.names import Name, Names
from relax_egraph.egraph.rulebook.forms import Form, Source, premises_of
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.rulebook.scope import declarations_in
from relax_egraph.egraph.rulebook.vocabulary import Declaration
from relax_egraph.ir.message import counted, some
from relax_egraph.lsp.book import (
    book_names,
    declarations,
    declared_in,
    known_names,
    tables_with,
)


def hover(names: Names, name: Name, rules: Mapping[str, Rule]) -> str:
    """What `name` is; empty if that is not known.

    `rules` are those of the file by name, where it was read without error.
    """
    match name.kind:
        case "table":
            return "\n\n".join(_table(names, name.text))
        case "variable":
            return _variable(names, name)
        case "rule":
            return "\n\n".join(_rule(name, rules.get(name.text)))
        case "ruleset":
            return _ruleset(names, name)
        case "sort":
            return f"sort `{name.text}`"


def _table(names: Names, text: str) -> Iterator[str]:
    """The signature of an operator, relation or function, its meaning, and rules with it."""
    known = known_names().get(text)
    if known:
        yield _signature(known)
        yield f"{known.meaning[:1].upper()}{known.meaning[1:]}."
    else:
        where = names if declared_in(names, text, "table") else declarations().get((text, "table"))
        place = where and declared_in(where, text, "table")
        if where is None or place is None:
            return
        yield from map(_signature, _of(place.form, text))
        yield from filter(None, (" ".join(where.source.comment_above(place.form)),))
        yield f"Declared at {_place(where.source, place)}."
    reading, making = _uses(names, text)
    counts = [
        f"{verb} by {counted(len(of), 'rule')}: {some(of)}"
        for verb, of in (("read", reading), ("made", making))
        if of
    ]
    yield from filter(None, ("; ".join(counts),))


def _of(form: Form, text: str) -> Iterator[Declaration]:
    return (declared for declared in declarations_in(form) if declared.name == text)


def _signature(declared: Declaration) -> str:
    return f"```egg\n{declared.usage} → {declared.result}\n```"


def _place(source: Source, name: Name) -> str:
    return str(source.span(name.start))


def _uses(names: Names, text: str) -> tuple[list[str], list[str]]:
    """The rules of the book and the file that read a table, and those that only make it."""
    reading: dict[str, None] = {}
    making: dict[str, None] = {}
    for each in (*book_names(), names):
        owners = {n.form: n.text for n in each.every if n.kind == "rule"}
        for use in each.every:
            if use.kind == "table" and use.text == text and use.form in owners:
                kind = reading if _is_read(use) else making
                kind[owners[use.form]] = None
    return [*reading], [rule for rule in making if rule not in reading]


def _is_read(use: Name) -> bool:
    """Whether a name stands on the side of a rule that is matched, or in its premises."""
    form = use.form
    matched = form.items[1:3] if form.head == "birewrite" else form.items[1:2]
    return any(tree.start <= use.start < tree.end for tree in (*matched, *premises_of(form)))


def _variable(names: Names, name: Name) -> str:
    """The sort of a variable, by an argument that it stands for."""
    tables = tables_with(names)
    for use in names.of(name):
        declared = tables.get(use.within.head)
        if declared and 0 < use.at <= len(declared.params):
            param = declared.params[use.at - 1]
            return f"variable `{name.text}`: {param.sort}, as {param.name} of `{declared.name}`"
    return f"variable `{name.text}`"


def _rule(name: Name, rule: Rule | None) -> Iterator[str]:
    yield f"rule `{name.text}`"
    if rule is not None:
        yield rule.law or "It has no law: a comment above it that says what it equates."
        yield f"ruleset `{rule.ruleset}`, float class {rule.float_class}"


def _ruleset(names: Names, name: Name) -> str:
    files = (*book_names(), names)
    uses = [n for each in files for n in each.every if n.same(name) and not n.declares]
    return f"ruleset `{name.text}` of {counted(len(uses), 'rule')}"
