"""What premises of rules may be, as a diff of the files that state them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from difflib import unified_diff

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Source, written
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.prove.premises import Premise
from relax_egraph.rules import FAMILIES, text


def suggestion(found: Mapping[Rule, Iterable[Premise]], book: RuleBook) -> str:
    """A unified diff that leaves out, or loosens, premises that rules do not need."""
    edits: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for rule, premises in found.items():
        for premise in premises:
            if premise.need in ("not needed", "looser"):
                new = "" if premise.instead is None else written(premise.instead)
                edits[rule.span.file].append((premise.tree.start, premise.tree.end, new))
    sources = [Source(f"rules/{family}.egg", text(family)) for family in FAMILIES]
    files = ((s, edits[s.name]) for s in (*sources, *book.user) if s.name in edits)
    return "".join(_diff(source, changes) for source, changes in files)


def _diff(source: Source, edits: Iterable[tuple[int, int, str]]) -> str:
    """The unified diff of a file of which some places have other texts."""
    changed = source.text
    for start, end, instead in sorted(edits, reverse=True):
        before = changed[:start] if instead else changed[:start].rstrip()
        after = changed[end:]
        if not instead and before.endswith("("):
            after = after.lstrip()
        changed = f"{before}{instead}{after}".replace(" :when ()", "")
    old, new = (t.splitlines(keepends=True) for t in (source.text, changed))
    return "".join(unified_diff(old, new, source.name, source.name))
