"""The pages of the vocabulary of rules: each name, its meaning, and the rules that mention it."""

from collections.abc import Iterable, Iterator
from functools import cache

from docs.operators import families
from docs.site.mentions import rules_by_name
from docs.site.text import prose
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.rulebook.scope import vocabulary
from relax_egraph.egraph.rulebook.vocabulary import Declaration

FOLDER = "reference/operators/"

_OTHERS = {
    "calls": "Calls, tuples and what is left out",
    "facts": "Facts and guards",
    "dimensions": "Values, dimensions and scalars",
    "kernels": "Steps of kernels",
}

_ARGUMENTS = """\
`(R.sum x:Tensor axis:Axes keepdims:bool)` is the name with the sort of each argument: a rule writes
`(R.sum x axis keepdims)`, operands first, then every attribute in order, or attributes by name.
"""


def pages() -> dict[str, str]:
    """The pages by their places in the site."""
    return {f"{FOLDER}{stem}.md": _page(*said) for stem, said in _grouped().items()}


def _grouped() -> dict[str, tuple[str, list[Declaration]]]:
    """The vocabulary, by page: a title, and names."""
    left = {d.name: d for d in vocabulary()}
    groups: dict[str, tuple[str, list[Declaration]]] = {}
    for title, _, members in families():
        declared = [left.pop(f"R.{op.name}") for op in members if f"R.{op.name}" in left]
        if declared:
            stem = members[0].rule.__module__.rpartition(".")[2]
            groups[stem] = (title.replace("`", ""), declared)
    for stem, title in _OTHERS.items():
        groups[stem] = (title, [d for d in left.values() if _other(d) == stem])
    return groups


def _other(d: Declaration) -> str:
    if d.name.startswith("K."):
        return "kernels"
    if d.name.startswith("R."):
        return "calls"
    return "dimensions" if d.kind == "constructor" else "facts"


def _page(title: str, members: Iterable[Declaration]) -> str:
    return "\n\n".join((f"# {title}", _ARGUMENTS, *map(_entry, members))) + "\n"


def _entry(d: Declaration) -> str:
    result = "" if d.result == "Unit" else f" → `{d.result}`"
    parts = [
        f"## {d.name} {{ #{anchor(d.name)} }}",
        f"`{d.usage}`{result}",
        prose(_sentence(d.meaning)),
    ]
    return "\n\n".join((*parts, *_mentions(d.name)))


def _sentence(meaning: str) -> str:
    return f"{meaning[:1].upper()}{meaning[1:].rstrip('.')}." if meaning else ""


_MOST = 8


def _mentions(name: str) -> Iterator[str]:
    matching, making = rules_by_name().get(name, ([], []))
    for verb, some in (("Matched", matching), ("Made", making)):
        if not some:
            continue
        links = ", ".join(map(link, some))
        if len(some) <= _MOST:
            yield f"{verb} by {links}."
        else:
            yield f'??? note "{verb} by {len(some)} rules"\n\n    {links}'
    if not matching and not making:
        yield "No rule of the book mentions it."


def link(rule: Rule) -> str:
    """A link to the section of a rule, from a page of this folder."""
    return f"[`{rule.name}`](../rules/{rule.ruleset}.md#{rule.name})"


@cache
def places() -> dict[str, str]:
    """By name of the vocabulary, its section from a folder beside this one."""
    return {
        d.name: f"../operators/{stem}.md#{anchor(d.name)}"
        for stem, (_, members) in _grouped().items()
        for d in members
    }


def anchor(name: str) -> str:
    """The anchor of the section of a name."""
    return name.replace(".", "-")
