"""Writes an example of each rule that equates something, before and after: ``make docs``.

``docs/examples.json`` has an instance that egglog matched, with a digest of the rule, so that the
site need not search for one, and a test sees which rules have changed.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from rich.progress import track

from docs.instances import Example, example_of
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import written
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.prove.user_rules import equating

LEDGER = Path(__file__).parent / "examples.json"
BOOK = RuleBook.default(fast_math=True, bounded=True)


def row(rule: Rule) -> dict[str, Any]:
    """What the ledger has of `rule`; no sides if there is no example."""
    example = example_of(BOOK, rule)
    sides = asdict(example) | {"operands": [*example.operands]} if example else {}
    return {"name": rule.name, "of": digest(rule), **sides}


def digest(rule: Rule) -> str:
    """A digest of the rule without its comment."""
    return sha256(written(rule.form).encode()).hexdigest()[:12]


@cache
def examples() -> Mapping[str, Example]:
    """The examples of the ledger, by the names of their rules."""
    rows = json.loads(LEDGER.read_text("utf-8"))
    return {
        row["name"]: Example(tuple(row["operands"]), row["before"], row["after"])
        for row in rows
        if "before" in row
    }


def main() -> None:
    """Search an example of each rule, and write the ledger, a line for each."""
    rows = [row(rule) for rule in track(equating(BOOK), "searching examples")]
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in rows)
    LEDGER.write_text(f"[\n{lines}\n]\n", "utf-8")


if __name__ == "__main__":
    main()
