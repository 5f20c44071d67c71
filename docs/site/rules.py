"""The pages of the rule book: one for each family, with a section for each rule."""

import json
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from docs.examples import examples
from docs.proofs import LEDGER
from docs.site.mentions import BOOK, cases_by_rule, made, matched
from docs.site.operators import places
from docs.site.text import fenced, prose, table
from relax_egraph import rules
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.verify.file_tests.cases import FileTest
from relax_egraph.verify.rule_text import rule_text

FOLDER = "reference/rules/"


def pages() -> dict[str, str]:
    """The pages by their places in the site: the list of families first."""
    by_family = {
        family: list(some) for family, some in groupby(BOOK.rules, key=lambda r: r.ruleset)
    }
    listed = {f"{FOLDER}index.md": _index(by_family)}
    return listed | {f"{FOLDER}{f}.md": _page(f, some) for f, some in by_family.items()}


@cache
def _proofs() -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads(LEDGER.read_text("utf-8"))}


def _index(by_family: dict[str, list[Rule]]) -> str:
    rows = [
        (
            f"[{family}]({family}.md)",
            str(len(some)),
            str(sum(_proofs().get(r.name, {}).get("status") == "proven" for r in some)),
            str(sum(r.name in cases_by_rule() for r in some)),
        )
        for family, some in by_family.items()
    ]
    count = sum(map(len, by_family.values()))
    head = f"# Rules\n\nThe book has {count} rules in {len(rows)} families.\n"
    return f"{head}\n{table(('family', 'rules', 'proven', 'with file tests'), rows)}\n"


def _page(family: str, some: list[Rule]) -> str:
    parts = [f"# {family}", _head_of(family), *map(_entry, some), *_file_tests(family)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _head_of(family: str) -> str:
    """The comment at the head of the family's file."""
    first = rules.text(family).partition("\n\n")[0]
    lines = [line.removeprefix(";").strip() for line in first.splitlines()]
    return prose("\n".join(lines)) if first.startswith(";") else ""


def _entry(rule: Rule) -> str:
    text = rule_text(BOOK, rule).text
    parts = [f"## {rule.name} {{ #{rule.name} }}", *_law(rule), *_facts(rule)]
    parts += [fenced(text, "lisp"), *_example(rule), *_tests(rule)]
    return "\n\n".join(parts)


def _law(rule: Rule) -> Iterator[str]:
    if rule.law:
        yield "\n".join(f"> {line}  " for line in prose(rule.law).splitlines())


def _facts(rule: Rule) -> Iterator[str]:
    said = [f"Float class **{rule.float_class}**", _proof(rule)]
    yield "; ".join(filter(None, said)) + "."
    for verb, names in (("Matches", matched(rule)), ("Makes", made(rule))):
        if known := [f"[`{n}`]({places()[n]})" for n in names if n in places()]:
            yield f"{verb} {', '.join(known)}."


def _proof(rule: Rule) -> str:
    row = _proofs().get(rule.name)
    if row is None:
        return "equates nothing, so there is nothing to prove"
    if row["status"] == "proven":
        ranks = ", ".join(map(str, row["ranks"]))
        return f"**proven** for all extents{f', of ranks {ranks}' if ranks else ''}"
    return f"**{row['status']}**: {prose(' '.join(row['reason'].split()))}"


def _example(rule: Rule) -> Iterator[str]:
    if example := examples().get(rule.name):
        lines = [*example.operands, "", example.before, "# becomes equal to", example.after]
        yield fenced("\n".join(lines), "python")


def _tests(rule: Rule) -> Iterator[str]:
    if seen := cases_by_rule().get(rule.name, []):
        yield f"Fires in: {'; '.join(map(_link, seen))}."


def _link(test: FileTest) -> str:
    return f"[{prose(test.title.rstrip('.'))}]({Path(test.file).stem}.md#test-{test.line})"


def _file_tests(family: str) -> Iterator[str]:
    """The cases of the family's file."""
    seen = {t.line: t for some in cases_by_rule().values() for t in some if _of(family, t)}
    if seen:
        yield "## File tests"
    for line, test in sorted(seen.items()):
        yield f"### {prose(test.title)} {{ #test-{line} }}\n\n{fenced(test.text, 'lisp')}"


def _of(family: str, test: FileTest) -> bool:
    return Path(test.file).stem == family
