"""The loader of rule files: texts to rules and statements, with diagnostics at their places.

Each top-level form is parsed alone: egglog's spans carry a copy of their whole text, so that
parsing takes memory quadratic in its length.
"""

import re
from collections.abc import Iterator
from itertools import chain, count
from typing import cast

from relax_egraph.egraph.bindings import EggSmolError, EGraph
from relax_egraph.egraph.rulebook.alternatives import alternatives
from relax_egraph.egraph.rulebook.calls import demanded
from relax_egraph.egraph.rulebook.check import Options, check_rule, options_of
from relax_egraph.egraph.rulebook.forms import (
    DECLARATIONS,
    MEANING,
    RULES,
    RUNS,
    Form,
    Source,
    form_of,
)
from relax_egraph.egraph.rulebook.guards import expand
from relax_egraph.egraph.rulebook.named_attributes import with_all_attributes
from relax_egraph.egraph.rulebook.ordering import in_order
from relax_egraph.egraph.rulebook.reader import Unread, read, read_all
from relax_egraph.egraph.rulebook.refusals import explained
from relax_egraph.egraph.rulebook.rule import ROOT, Entry, FloatClass, Rule, Statement
from relax_egraph.egraph.rulebook.scope import ENGINE_RULESETS, Scope, declare, near
from relax_egraph.egraph.rulebook.shorthand import written_out
from relax_egraph.egraph.rulebook.stating import as_rules, state
from relax_egraph.egraph.rulebook.vocabulary import function_declaration
from relax_egraph.egraph.rulebook.wrong_forms import WrongForms
from relax_egraph.errors import RuleError, Span
from relax_egraph.rules import FAMILIES

_SHORTHAND = re.compile(
    r"\(or\s|\(R\.call_|\([RK]\.\S+\s+\(vec-of|\s:(?!(?:when|subsume|demand|ruleset|name)\b)"
)
"""A sign that a rule may have shorthand; few of the book have one."""

_FLOAT = re.compile(r"float: (exact|reassociates|fast|bounded)")


def load(source: Source, scope: Scope, trial: EGraph | None) -> list[Entry]:
    """Check all forms of `source`, run them on `trial`, and add their names to `scope`.

    Raises one `RuleError` for all wrong forms; `scope` and `trial` are then unusable.  Without
    `trial` the rules are trusted and not checked, which takes a third of the time.
    """
    entries = [*_functions(source, scope, trial)]
    wrong = WrongForms(source, scope)
    for item in read_all(source):
        if wrong.explain(item):
            continue
        try:
            if isinstance(item, Unread):
                raise item.error
            for form in _without_shorthand(item, source, scope):
                entries += _entries(form, source, scope, trial)
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
        texts = scope.declarations[function.name].text, demanded(function)
        for statement in map(Statement, read(Source(function.name, "\n".join(texts)))):
            if trial:
                _try(statement, source, scope, trial)
            yield statement


def _without_shorthand(form: Form, source: Source, scope: Scope) -> Iterator[Form]:
    """The rules that `form` stands for; raises `RuleError`."""
    if form.head not in RULES or not _SHORTHAND.search(source.text, form.start, form.end):
        yield form
        return
    for one in alternatives(form, source):
        yield written_out(with_all_attributes(one, source), source, scope)


def _entries(form: Form, source: Source, scope: Scope, trial: EGraph | None) -> Iterator[Entry]:
    """The entries that `form` adds to a book; raises `RuleError`."""
    if form.head in DECLARATIONS:
        declare(form, source, scope)
        entry: Entry = Statement(form)
    elif form.head in RULES:
        checked = check_rule(form, source, scope) if trial else options_of(form, source)
        entry = _rule(checked, source, scope)
        if entry.ruleset not in scope.rulesets:
            scope.rulesets[entry.ruleset] = entry.span
            ruleset = Statement(form_of("ruleset", entry.ruleset, at=form.start))
            yield ruleset
            if trial:
                _try(ruleset, source, scope, trial)
        scope.rules[entry.name] = entry.span
    elif form.head == MEANING:
        rules = [with_all_attributes(way, source) for way in as_rules(form, source)]
        state(form, rules, source, scope, check=trial is not None)
        if trial:
            for rule in rules:
                _try(Statement(expand(rule)), source, scope, trial)
        return
    elif form.head in RUNS:
        note = "a rule file declares rules; the engine runs them"
        raise source.error(form, f"{form.head} is not allowed in a rule file", note)
    else:
        shown = form.head or "a form without a command"
        note = near(form.head, (*RULES, *DECLARATIONS, MEANING))
        raise source.error(form, f"unknown command {shown}", note)
    yield entry
    if trial:
        _try(entry, source, scope, trial)


def _rule(options: Options, source: Source, scope: Scope) -> Rule:
    file = source.name.rsplit("/", 1)[-1]
    name, ruleset = options.name, options.ruleset
    form = options.form if scope.trusted else in_order(options.form, ROOT)
    span, comment = source.span(form.start), source.comment_above(form)
    stated = [m[1] for line in comment if (m := _FLOAT.fullmatch(line))]
    return Rule(
        name=name.text.strip('"') if name else _place(file, span, scope),
        ruleset=ruleset.text if ruleset else _family(file, scope),
        form=form,
        span=span,
        law=" ".join(line for line in comment if not _FLOAT.fullmatch(line)),
        float_class=cast(FloatClass, stated[0]) if stated else "unstated",
    )


def _place(file: str, span: Span, scope: Scope) -> str:
    """An unused name for the rule at `span`: ``my.egg:3``, or a longer one."""
    line = f"{file}:{span.line}"
    more = (f"{line}:{span.column}" + f" ({k})" * (k > 1) for k in count(1))
    return next(name for name in chain((line,), more) if name not in scope.rules)


def _family(file: str, scope: Scope) -> str:
    """The default ruleset of rules in `file`; a user's file never joins a family of the book."""
    stem = re.sub(r"\W+", "-", file.removesuffix(".egg")).strip("-") or "rules"
    own = not scope.trusted and stem in (*ENGINE_RULESETS, "lower", *FAMILIES)
    return f"user/{stem}" if own else stem


def _try(entry: Entry, source: Source, scope: Scope, trial: EGraph) -> None:
    """Run `entry` on `trial`, for errors that only egglog detects."""
    try:
        trial.run_program(*trial.parse_program(entry.text))
    except EggSmolError as problem:
        raise explained(problem.context, expand(entry.form), entry.form, source, scope) from None
    except BaseException as problem:
        if type(problem).__name__ != "PanicException":
            raise
        raise source.error(entry.form, f"egglog panics at this form: {problem}") from None
