"""Proves the rules of the book, and writes down what is proven of each: ``make prove``.

``docs/proofs.json`` has a verdict for each rule with a digest of what it depends on, so that a test
proves only the rules that changed since; ``docs/proofs.md`` is the page for readers.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from rich.progress import track

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.prove.kept import certificate, stated
from relax_egraph.prove.user_rules import equating
from relax_egraph.prove.verdict import Verdict

PAGE = Path(__file__).parent / "proofs.md"
LEDGER = PAGE.with_suffix(".json")
BOOK = RuleBook.default(fast_math=True, bounded=True)

_MOST = 160
"""The most characters of a reason in the page."""

_HEAD = """\
# What is proven of the rules

Of {count} rules that equate something, {proven} are proven for all extents: both sides are equal
over the real numbers (integers modulo their range, truth values), for operands of the ranks that
are listed, and the right side is well-typed wherever the left side is. How both sides round is
measured by `relax-egraph rules check`; what a proof rests on, and what it does not cover, is in
[`relax_egraph/prove/README.md`](../relax_egraph/prove/README.md). A rule that is not proven may be
right. The file is written by `make prove`.
"""


def row(verdict: Verdict, digest: str) -> dict[str, Any]:
    """What the ledger says of one rule."""
    said = verdict.as_dict()
    kept = {name: said[name] for name in ("name", "family", "status", "ranks", "meanings")}
    return {**kept, "reason": verdict.reason[:_MOST], "stated": digest}


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    """The page for readers."""
    proven = [r for r in rows if r["status"] == "proven"]
    lines = [_HEAD.format(count=len(rows), proven=len(proven))]
    lines += ["| family | rules | proven | of ranks 0 to 4 |", "|---|--:|--:|--:|"]
    for family, some in _by_family(rows):
        sure = [r for r in some if r["status"] == "proven"]
        whole = sum(max(r["ranks"], default=4) >= 4 for r in sure)
        lines.append(f"| {family} | {len(some)} | {len(sure)} | {whole} |")
    lines += ["", "## Not proven", "", "| rule | family | why |", "|---|---|---|"]
    for r in rows:
        if r["status"] != "proven":
            lines.append(f"| `{r['name']}` | {r['family']} | {_reason(r)} |")
    lines += ["", "## Proven", "", "| rule | ranks of its operands | rests on the meanings of |"]
    lines += ["|---|---|---|"]
    for r in proven:
        meanings = ", ".join(f"`{name}`" for name in r["meanings"])
        lines.append(f"| `{r['name']}` | {', '.join(map(str, r['ranks'])) or '0'} | {meanings} |")
    return "\n".join(lines) + "\n"


def _by_family(
    rows: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    for family, some in groupby(rows, key=lambda r: r["family"]):
        yield family, list(some)


def _reason(r: Mapping[str, Any]) -> str:
    text = " ".join(r["reason"].split()).replace("|", "\\|")
    return text if r["status"] == "not proven" else f"{r['status']}: {text}"


def ledger_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """The ledger, a line for each rule."""
    lines = (json.dumps(r, ensure_ascii=False) for r in rows)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def cost(verdicts: Sequence[Verdict]) -> str:
    """What the proofs took when they were made, in CPU seconds."""
    seconds = [v.seconds for v in verdicts]
    worst = max(verdicts, key=lambda v: v.seconds)
    proven = sum(v.status == "proven" for v in verdicts)
    return (
        f"{proven} of {len(verdicts)} rules proven; CPU seconds: {sum(seconds):.0f}, a rule "
        f"{median(seconds):.2f} (median), {worst.seconds:.1f} (`{worst.rule.name}`)"
    )


def main() -> None:
    """Prove every rule; proofs in the cache are not made again."""
    rules = sorted(equating(BOOK), key=lambda rule: (rule.ruleset, rule.name))
    verdicts = [certificate(rule, BOOK).verdict for rule in track(rules, "proving rules")]
    rows = [row(v, stated(rule, BOOK)) for v, rule in zip(verdicts, rules, strict=True)]
    LEDGER.write_text(ledger_text(rows), "utf-8")
    PAGE.write_text(page(rows), "utf-8")
    print(cost(verdicts))


if __name__ == "__main__":
    main()
