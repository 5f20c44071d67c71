"""From the text of a rule file to egglog commands, with diagnostics that point into the text.

Each top-level form is parsed alone: egglog's spans carry a copy of their whole text, so that
parsing takes memory quadratic in its length.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from egglog.bindings import EggSmolError, EGraph

from relax_egraph.egraph.check import Options, check_rule, never_matched, options_of
from relax_egraph.egraph.commands import Command
from relax_egraph.egraph.forms import Atom, Form, Source, read
from relax_egraph.egraph.guards import Expanded, expand
from relax_egraph.egraph.scope import PRIMITIVES, Scope, declare, near
from relax_egraph.errors import RuleError, Span

RuleKind: TypeAlias = Literal["rewrite", "birewrite", "rule"]
FloatClass: TypeAlias = Literal["exact", "reassociates", "fast", "bounded", "unstated"]

_FLOAT = re.compile(r"float: (exact|reassociates|fast|bounded)")
_DECLARES = ("ruleset", "sort", "datatype", "constructor", "function", "relation")
_RULES = ("rewrite", "birewrite", "rule")
_RUNS = (
    *("run", "run-schedule", "extract", "multi-extract", "include", "input", "output", "let"),
    *("set", "union", "delete", "subsume", "check", "fail", "panic", "push", "pop", "prove"),
    *("print-function", "print-size", "print-stats", "let-scheduler", "with-ruleset"),
    *("unstable-combined-ruleset", "datatype*"),
)


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """A rule of the book.

    `law` is the comment above it, `float_class` what it does to rounding (``rules/README.md``),
    `form` its text without ruleset and name.  A birewrite is reported as ``name=>`` and ``name<=``.
    """

    name: str
    ruleset: str
    kind: RuleKind
    span: Span
    law: str
    float_class: FloatClass
    form: str

    @property
    def reported(self) -> tuple[str, ...]:
        """The names under which reports count its matches."""
        return (f"{self.name}=>", f"{self.name}<=") if self.kind == "birewrite" else (self.name,)

    def text(self, ruleset: str) -> str:
        """The rule as egglog reads it, in `ruleset`."""
        return f'{expand(self.form).text[:-1]} :ruleset {ruleset} :name "{self.name}")'


Entry: TypeAlias = RuleInfo | str
"""A rule, or the text of a declaration."""


def load(source: Source, scope: Scope, trial: EGraph | None) -> list[Entry]:
    """Check all forms of `source`, run them on `trial`, and add their names to `scope`.

    Raises `RuleError` at the first form that is wrong; `scope` and `trial` are then of no use.
    Without `trial` the rules count as checked: that takes a third of the time.
    """
    entries: list[Entry] = []
    for form in read(source):
        text = source.text[form.start : form.end]
        expanded = Expanded(text)
        if form.head in _DECLARES:
            declare(form, source, scope)
            entries.append(text)
        elif form.head in _RULES:
            checked = check_rule(form, source, scope) if trial else options_of(form, source)
            info = _rule(form, checked, source, scope)
            if info.ruleset not in scope.rulesets:
                scope.rulesets[info.ruleset] = form.span
                ruleset = f"(ruleset {info.ruleset})"
                entries.append(ruleset)
                if trial:
                    _try(ruleset, Expanded(ruleset), form, source, scope, trial)
            scope.rules[info.name] = form.span
            text, expanded = info.text(info.ruleset), expand(info.form)
            entries.append(info)
        elif form.head in _RUNS:
            note = "a rule file declares rules; the engine runs them"
            raise source.error(form.span, f"{form.head} is not allowed in a rule file", note)
        else:
            shown = form.head or "a form without a command"
            note = near(form.head, (*_RULES, *_DECLARES))
            raise source.error(form.span, f"unknown command {shown}", note)
        if trial:
            _try(text, expanded, form, source, scope, trial)
    return entries


def commands_of(entries: Sequence[Entry], parser: EGraph) -> tuple[Command, ...]:
    """The parsed commands of `entries`, each rule in its own ruleset."""
    texts = [entry if isinstance(entry, str) else entry.text(entry.ruleset) for entry in entries]
    return tuple(command for text in texts for command in parser.parse_program(text))


def _rule(form: Form, options: Options, source: Source, scope: Scope) -> RuleInfo:
    file = source.name.rsplit("/", 1)[-1]
    stem = re.sub(r"\W+", "-", file.removesuffix(".egg")).strip("-")
    place = f"{file}:{form.span.line}"
    if place in scope.rules:
        place += f":{form.span.column}"
    comment = source.comment_above(form)
    stated = [m[1] for line in comment if (m := _FLOAT.fullmatch(line))]
    text = source.text[form.start : form.end]
    for atom in options.places:
        start, end = atom.start - form.start, atom.end - form.start
        text = text[:start] + " " * len(atom.text) + text[end:]
    return RuleInfo(
        name=options.name.text.strip('"') if options.name else place,
        ruleset=options.ruleset.text if options.ruleset else stem,
        kind=cast(RuleKind, form.head),
        span=form.span,
        law=" ".join(line for line in comment if not _FLOAT.fullmatch(line)),
        float_class=cast(FloatClass, stated[0]) if stated else "unstated",
        form=text,
    )


def _try(
    text: str, expanded: Expanded, form: Form, source: Source, scope: Scope, trial: EGraph
) -> None:
    """Run `text`, which begins as `expanded`, on `trial`, for what only egglog finds out."""
    try:
        trial.run_program(*trial.parse_program(text))
    except EggSmolError as problem:
        raise explained(problem.context, expanded, form, source, scope) from None


_PLACE = re.compile(r"(?:In|At) (\d+):(\d+)-[\d:]+(?: of [^:\n]*)?: ?(?P<quoted>[^\n]*)\n?")


def explained(
    context: str, expanded: Expanded, form: Form, source: Source, scope: Scope
) -> RuleError:
    """The error that egglog reports as `context`, in our words where there are better ones."""
    place = _PLACE.search(context)
    span = form.span
    if place:
        before = expanded.text.split("\n")[: int(place[1]) - 1]
        offset = sum(len(line) + 1 for line in before) + int(place[2]) - 1
        span = source.span(form.start + expanded.original(offset))
    lines = [s.strip().rstrip(".") for s in _PLACE.sub("", context).split("\n") if s.strip()]
    said = lines[0] if lines else "egglog refuses this form"
    if name := re.match(r"Unbound (?:function|symbol) (\S+)", said):
        note = near(name[1], (*scope.declarations, *PRIMITIVES))
        return source.error(span, f"unknown operator {name[1]}", note)
    if sorts := re.match(r"Expect expression \S+ to have type (\S+), but get type (\S+)", said):
        return source.error(span, f"this is of sort {sorts[2]}, where {sorts[1]} is needed")
    if name := re.match(r"Shadowing is not allowed, but found (\S+)", said):
        return _shadowing(name[1], form, source, scope)
    if said.startswith("Value lookup of non-constructor"):
        shown = place["quoted"] if place else "a fact"
        note = f"bind it where the rule matches: (= v {shown})"
        return source.error(span, f"{shown} cannot be looked up in what a rule makes", note)
    if said.endswith("is ungrounded"):
        variable = never_matched(form, scope) or "a variable"
        note = "a variable must occur under an operator or a fact"
        return source.error(span, f"nothing that can be matched gives {variable} a value", note)
    if said.startswith("All alternative definitions"):
        return source.error(span, "no form of this primitive takes arguments of these sorts")
    return source.error(span, said[0].lower() + said[1:])


def _shadowing(name: str, form: Form, source: Source, scope: Scope) -> RuleError:
    """The error for a variable, or what is declared, whose `name` stands for something else."""
    span = next((atom.span for atom in _arguments(form) if atom.text == name), form.span)
    declared = scope.declarations.get(name)
    if form.head not in _RULES:
        what = "ruleset" if name in scope.rulesets else "primitive"
        return source.error(span, f"{name} is the name of a {what}", "choose another name")
    what, note = ("sort", "") if declared is None else (declared.kind, declared.usage)
    note = " ".join(filter(None, (f"{note} is declared;" if note else "", "rename the variable")))
    return source.error(span, f"{name} is the name of a {what}, and of no variable", note)


def _arguments(form: Form) -> Iterator[Atom]:
    """The atoms in `form` that no parenthesis opens with, in order."""
    for item in form.items[1:] if form.head else form.items:
        if isinstance(item, Form):
            yield from _arguments(item)
        else:
            yield item
