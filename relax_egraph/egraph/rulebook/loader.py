"""From the text of a rule file to egglog commands, with diagnostics that point into the text.

Each top-level form is parsed alone: egglog's spans carry a copy of their whole text, so that
parsing takes memory quadratic in its length.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Literal, TypeAlias, cast

from egglog.bindings import EggSmolError, EGraph

from relax_egraph.egraph.commands import Command
from relax_egraph.egraph.rulebook.calls import demanded
from relax_egraph.egraph.rulebook.check import Options, check_rule, options_of
from relax_egraph.egraph.rulebook.forms import DECLARATIONS, RULES, RUNS, Form, Source
from relax_egraph.egraph.rulebook.guards import Expanded, expand
from relax_egraph.egraph.rulebook.reader import Unread, read_all
from relax_egraph.egraph.rulebook.refusals import explained
from relax_egraph.egraph.rulebook.scope import ENGINE_RULESETS, Scope, declare, near
from relax_egraph.egraph.rulebook.vocabulary import function_declaration
from relax_egraph.egraph.rulebook.wrong_forms import WrongForms
from relax_egraph.errors import RuleError, Span
from relax_egraph.rules import FAMILIES

RuleKind: TypeAlias = Literal["rewrite", "birewrite", "rule"]
FloatClass: TypeAlias = Literal["exact", "reassociates", "fast", "bounded", "unstated"]

_FLOAT = re.compile(r"float: (exact|reassociates|fast|bounded)")


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

    Raises one `RuleError` for all forms that are wrong; `scope` and `trial` are then of no use.
    Without `trial` the rules count as checked: that takes a third of the time.
    """
    entries = [*_functions(source, scope, trial)]
    wrong = WrongForms(source, scope)
    for item in read_all(source):
        if wrong.explain(item):
            continue
        try:
            if isinstance(item, Unread):
                raise item.error
            entries += _entries(item, source, scope, trial)
        except RuleError as error:
            if not wrong.add(item, error):
                break
    wrong.raise_all()
    return entries


def _functions(source: Source, scope: Scope, trial: EGraph | None) -> Iterator[Entry]:
    """The declarations of the functions that `source` calls; raises `RuleError`."""
    for function in source.functions:
        if function.name in scope.functions:
            continue
        if function.name in scope.declarations:
            at = source.text.index(f"({function.name} ")
            message = f"{function.name} is declared already, and is a function of Python, too"
            raise source.error(source.span(at), message, "declare the function by another name")
        scope.functions.add(function.name)
        scope.declarations[function.name] = function_declaration(function)
        for text in (scope.declarations[function.name].text, demanded(function)):
            if trial:
                trial.run_program(*trial.parse_program(text))
            yield text


def _entries(form: Form, source: Source, scope: Scope, trial: EGraph | None) -> Iterator[Entry]:
    """What `form` adds to a book; raises `RuleError`."""
    text = source.text[form.start : form.end]
    expanded = Expanded(text)
    if form.head in DECLARATIONS:
        declare(form, source, scope)
        yield text
    elif form.head in RULES:
        checked = check_rule(form, source, scope) if trial else options_of(form, source)
        info = _rule(form, checked, source, scope)
        if info.ruleset not in scope.rulesets:
            scope.rulesets[info.ruleset] = form.span
            ruleset = f"(ruleset {info.ruleset})"
            yield ruleset
            if trial:
                _try(ruleset, Expanded(ruleset), form, source, scope, trial)
        scope.rules[info.name] = form.span
        text, expanded = info.text(info.ruleset), expand(info.form)
        yield info
    elif form.head in RUNS:
        note = "a rule file declares rules; the engine runs them"
        raise source.error(form.span, f"{form.head} is not allowed in a rule file", note)
    else:
        shown = form.head or "a form without a command"
        note = near(form.head, (*RULES, *DECLARATIONS))
        raise source.error(form.span, f"unknown command {shown}", note)
    if trial:
        _try(text, expanded, form, source, scope, trial)


def commands_of(entries: Sequence[Entry], parser: EGraph) -> tuple[Command, ...]:
    """The parsed commands of `entries`, each rule in its own ruleset."""
    texts = [entry if isinstance(entry, str) else entry.text(entry.ruleset) for entry in entries]
    return tuple(command for text in texts for command in parser.parse_program(text))


def _rule(form: Form, options: Options, source: Source, scope: Scope) -> RuleInfo:
    file = source.name.rsplit("/", 1)[-1]
    comment = source.comment_above(form)
    stated = [m[1] for line in comment if (m := _FLOAT.fullmatch(line))]
    text = source.text[form.start : form.end]
    for atom in options.places:
        start, end = atom.start - form.start, atom.end - form.start
        text = text[:start] + " " * len(atom.text) + text[end:]
    return RuleInfo(
        name=options.name.text.strip('"') if options.name else _place(file, form.span, scope),
        ruleset=options.ruleset.text if options.ruleset else _family(file, scope),
        kind=cast(RuleKind, form.head),
        span=form.span,
        law=" ".join(line for line in comment if not _FLOAT.fullmatch(line)),
        float_class=cast(FloatClass, stated[0]) if stated else "unstated",
        form=text,
    )


def _place(file: str, span: Span, scope: Scope) -> str:
    """A name for the rule at `span` that no rule has: ``my.egg:3``, or one that is longer."""
    line = f"{file}:{span.line}"
    more = (f"{line}:{span.column}" + f" ({k})" * (k > 1) for k in count(1))
    return next(name for name in chain((line,), more) if name not in scope.rules)


def _family(file: str, scope: Scope) -> str:
    """The ruleset of rules without one in `file`; a file of a user joins none of the book's."""
    stem = re.sub(r"\W+", "-", file.removesuffix(".egg")).strip("-") or "rules"
    own = not scope.trusted and stem in (*ENGINE_RULESETS, "lower", *FAMILIES)
    return f"user/{stem}" if own else stem


def _try(
    text: str, expanded: Expanded, form: Form, source: Source, scope: Scope, trial: EGraph
) -> None:
    """Run `text`, which begins as `expanded`, on `trial`, for what only egglog finds out."""
    try:
        trial.run_program(*trial.parse_program(text))
    except EggSmolError as problem:
        raise explained(problem.context, expanded, form, source, scope) from None
    except BaseException as problem:
        if type(problem).__name__ != "PanicException":
            raise
        raise source.error(form.span, f"egglog panics at this form: {problem}") from None
