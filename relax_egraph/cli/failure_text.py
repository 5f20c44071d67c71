"""The report on a rule that fails its check, for the author of the rule."""

import difflib
import re
from collections.abc import Iterable, Iterator

import click

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.verify.failures.shown import operands, results
from relax_egraph.verify.rule_text import RuleText, rule_text
from relax_egraph.verify.verdict import Verdict

_OPERAND = re.compile(r"(\S+)(?:: | = )(.*)", re.DOTALL)


def failure_text(book: RuleBook, verdict: Verdict) -> str:
    """The failure of a rule of `book`: its place, an example, and a suggested fix."""
    text = text_of(book, verdict)
    blocks = [
        [click.style(f"{verdict.span}: {verdict.rule}: {_kind_text(verdict)}", bold=True)],
        list(_numbered(text, verdict.kind not in ("never fired", "not checked"))),
        list(_example(verdict)),
        list(_suggestion(verdict, text)),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def text_of(book: RuleBook, verdict: Verdict) -> RuleText:
    """The text of the rule of a verdict."""
    return rule_text(book, next(rule for rule in book.rules if rule.name == verdict.rule))


def _kind_text(verdict: Verdict) -> str:
    """The kind of the verdict, compared with the declaration of the rule."""
    if verdict.kind == "conditional":
        return "sound only under a condition"
    if verdict.kind not in ("reassociates", "fast"):
        return verdict.kind
    differs = [f"by {verdict.ulps:.3g} ulp"] if verdict.ulps else []
    if verdict.notable_differences:
        differs.append(f"on {', '.join(verdict.notable_differences)}")
    shown = f" (it differs {' and '.join(differs)})" if differs else ""
    if verdict.stated == "unstated":
        return f"{verdict.kind}{shown}, but declares no float class, as if it were exact"
    return f"{verdict.kind}{shown}, but declares {verdict.stated}"


def _numbered(text: RuleText, pointed: bool) -> Iterator[str]:
    """The numbered lines of a rule, with a caret under its right side."""
    line, column = text.conclusion
    for number, shown in enumerate(text.text.split("\n"), text.line):
        yield f"{number:>5} | {shown}"
        if pointed and number == line:
            yield click.style(f"{'':>5} | {'':>{column - 1}}^", fg="red")


def _example(verdict: Verdict) -> Iterator[str]:
    """Operands for which the sides differ, in a table, and the values of both sides."""
    example = verdict.counterexample
    if example is None:
        yield from _labelled("because", verdict.reason.splitlines())
        return
    lines = operands(example.pattern, example.instance)
    pairs = [m.groups() if (m := _OPERAND.fullmatch(line)) else ("", line) for line in lines]
    width = max((len(name) for name, _ in pairs), default=0)
    yield from _labelled("for", [f"{name:<{width}}  {value}" for name, value in pairs])
    yield from _labelled("gives", results(example.difference))


def _labelled(label: str, lines: Iterable[str]) -> Iterator[str]:
    for k, line in enumerate(lines):
        yield f"  {label if k == 0 else '':<7} {line}"


def _suggestion(verdict: Verdict, text: RuleText) -> Iterator[str]:
    """A suggested fix of the rule, as a diff."""
    better = suggested(verdict, text)
    if verdict.guard:
        yield f"  It holds if {verdict.guard.partition(': (')[0]}{':' if better else '.'}"
    elif better:
        yield "  To say so:"
    if better:
        yield from _diff(text.text, better)


def suggested(verdict: Verdict, text: RuleText) -> str | None:
    """The rule with the missing premise, or with its actual float class."""
    if verdict.guard:
        _, _, premise = verdict.guard.partition(": (")
        return text.with_premise(f"({premise}") if premise else None
    if not verdict.sound and verdict.kind in ("reassociates", "fast"):
        return text.with_class(verdict.kind)
    return None


def _diff(before: str, after: str) -> Iterator[str]:
    """The removed and added lines."""
    yield ""
    for line in difflib.ndiff(before.split("\n"), after.split("\n")):
        if line[0] in "-+":
            yield click.style(f"    {line[0]} {line[2:]}", fg="red" if line[0] == "-" else "green")
