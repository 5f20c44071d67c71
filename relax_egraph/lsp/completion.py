"""What may stand at a place of a rule file: names with snippets, options, variables, literals."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from relax_egraph.authoring.names import Names
from relax_egraph.egraph.encoding.attributes import SORT_OF_ATTR
from relax_egraph.egraph.rulebook.forms import RULES
from relax_egraph.egraph.rulebook.scope import PRIMITIVES
from relax_egraph.egraph.rulebook.vocabulary import Declaration, operators
from relax_egraph.ir import dtypes
from relax_egraph.lsp.book import book_names, known_names, tables_with
from relax_egraph.lsp.cursor import Cursor, Opened

Shown: TypeAlias = Literal["operator", "fact", "keyword", "variable", "value", "ruleset"]
"""What a completion is shown as."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A word to complete to, and the `snippet` to insert, with places ``${1:x}``.

    Those of smaller `order` come first.
    """

    word: str
    shown: Shown
    snippet: str
    detail: str = ""
    order: int = 1


def completions(cursor: Cursor, names: Names) -> list[Completion]:
    """The words that may stand at a place, instead of the word that ends there."""
    if cursor.is_comment:
        return []
    found = {one.word: one for one in _completions(cursor, names)}
    return sorted(found.values(), key=lambda one: (one.order, one.word))


def _completions(cursor: Cursor, names: Names) -> Iterator[Completion]:
    if not cursor.around or (cursor.is_head and len(cursor.around) == 1):
        yield from (_command(head, whole=not cursor.around) for head in _FORMS)
        return
    around = cursor.around[-1]
    if cursor.before == ":ruleset":
        yield from (Completion(name, "ruleset", name) for name in _rulesets(names))
    elif cursor.is_head:
        tables = tables_with(names)
        wanted = _wanted(cursor.around[:-1], tables)
        yield from (_applied(d, wanted) for d in tables.values())
        yield from (Completion(name, "keyword", name, order=3) for name in PRIMITIVES)
        yield Completion("=", "keyword", "= ${1:a} ${2:b}", "both are equal", 0)
    elif len(cursor.around) == 1 and around.head in RULES:
        yield from _options(around)
        yield from _variables(cursor)
    else:
        wanted = _wanted(cursor.around, tables_with(names))
        yield from _LITERALS.get(wanted, ())
        if around.items >= 0 and wanted == "String":
            yield from _texts(around)
        yield from _variables(cursor)
        yield from _attributes(around)


def _wanted(around: Iterable[Opened], tables: Mapping[str, Declaration]) -> str:
    """The sort of the next argument of the innermost form; empty if it is not known."""
    *_, last = (Opened(), *around)
    declared = tables.get(last.head)
    if declared is None or not 0 <= last.items < len(declared.params):
        return ""
    return declared.params[last.items].sort


def _rulesets(names: Names) -> Iterator[str]:
    for each in (*book_names(), names):
        yield from (name.text for name in each.declared() if name.kind == "ruleset")


def _applied(declared: Declaration, wanted: str) -> Completion:
    """A name that is applied, with a place for each argument."""
    places = (f"${{{k}:{param.name}}}" for k, param in enumerate(declared.params, 1))
    fits = not wanted or declared.result == wanted
    return Completion(
        declared.name,
        "operator" if declared.kind == "constructor" else "fact",
        " ".join((declared.name, *places)),
        f"{declared.usage} → {declared.result}",
        1 if fits else 2,
    )


def _command(head: str, *, whole: bool) -> Completion:
    """A top-level form; `whole` with its parentheses."""
    snippet, detail = _FORMS[head]
    return Completion(head, "keyword", snippet if whole else snippet[1:-1], detail)


def _variables(cursor: Cursor) -> Iterator[Completion]:
    return (Completion(name, "variable", name, order=0) for name in cursor.variables)


def _options(rule: Opened) -> Iterator[Completion]:
    """The options that a rule may have."""
    if rule.items >= 2:
        for word, (snippet, detail) in _OPTIONS.items():
            if rule.head != "rule" or word in (":ruleset", ":name"):
                yield Completion(word, "keyword", snippet, detail, 0)


def _attributes(applied: Opened) -> Iterator[Completion]:
    """The attributes by name of an operator."""
    prefix, _, name = applied.head.partition(".")
    if prefix in ("R", "K") and name in operators():
        for attr in operators()[name].op.attrs:
            sort = SORT_OF_ATTR[attr.kind]
            snippet = f":{attr.name} ${{1:{attr.name}}}"
            yield Completion(f":{attr.name}", "keyword", snippet, sort, 2)


def _texts(applied: Opened) -> Iterator[Completion]:
    """Texts for an argument: the dtypes, if that is what it is."""
    declared = known_names().get(applied.head)
    if declared and "dtype" in declared.params[applied.items].name:
        yield from (Completion(f'"{d}"', "value", f'"{d}"', order=0) for d in dtypes.DTYPES)


_LITERALS = {
    "bool": tuple(Completion(word, "value", word, order=0) for word in ("true", "false")),
    "Dim": (Completion("DimSym", "operator", '(DimSym "${1:n}")', "a dimension", 0),),
    "Axes": (Completion("vec-of", "operator", "(vec-of ${1:0})", "axes", 0),),
    "Shape": (Completion("vec-of", "operator", "(vec-of ${1:n})", "dimensions", 0),),
}

_OPTIONS = {
    ":when": (":when (${1:facts})", "premises besides the left side"),
    ":subsume": (":subsume", "the left side is matched no more"),
    ":demand": (":demand", "runs before all others, and hides the left side"),
    ":ruleset": (":ruleset ${1:name}", "the ruleset; by default that of the file"),
    ":name": (':name "${1:name}"', "the name in reports"),
}

_FORMS = {
    "rewrite": (
        '(rewrite ${1:left}\n         ${2:right}\n  :name "${3:name}")',
        "what matches the left side equals the right side",
    ),
    "birewrite": (
        '(birewrite ${1:left}\n           ${2:right}\n  :name "${3:name}")',
        "both sides are equal, in both directions",
    ),
    "rule": (
        '(rule (${1:facts})\n      (${2:actions})\n  :name "${3:name}")',
        "where all facts hold, the actions are done",
    ),
    "relation": ("(relation ${1:name} (${2:Tensor}))", "a fact of your own"),
    "function": (
        "(function ${1:name} (${2:Tensor}) ${3:i64} :merge ${4:old})",
        "a fact with a value",
    ),
    "constructor": ("(constructor ${1:name} (${2:Tensor}) ${3:Tensor})", "a term of your own"),
    "datatype": ("(datatype ${1:Sort} (${2:Variant} ${3:Tensor}))", "a sort with its terms"),
    "sort": ("(sort ${1:Name} (Vec ${2:Tensor}))", "a sort of vectors"),
    "ruleset": ("(ruleset ${1:name})", "a name for rules that run together"),
    "meaning": (
        "(meaning (${1:relation} ${2:x})\n  (${3:facts}))",
        "what the rows of a relation mean, for proofs",
    ),
}
