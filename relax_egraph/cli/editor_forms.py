"""The vocabulary in the formats of editors, for syntax highlighting and completion.

The surrounding language is egglog.  ``editors/README.md`` describes the installation.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

DECLARES = ("relation", "function", "constructor", "datatype", "sort", "ruleset", "meaning")
RULES = ("rewrite", "birewrite", "rule")
ACTIONS = ("let", "set", "union", "delete", "subsume")
RUNS = ("run", "run-schedule", "saturate", "seq", "repeat", "check", "fail")
OPTIONS = (":when", ":subsume", ":demand", ":ruleset", ":name", ":merge", ":no-merge", ":until")
SORTS = (
    *("Tensor", "Kernel", "Tuple", "Dim", "Prim", "Shape", "Axes", "Tensors", "Floats"),
    *("i64", "f64", "String", "bool", "Unit", "Vec", "UnstableFn", "PyObject"),
)
PRIMITIVES = (
    *("vec-of", "vec-empty", "vec-get", "vec-length", "vec-push", "vec-pop", "vec-append"),
    *("vec-set", "vec-remove", "vec-contains", "vec-not-contains", "vec-range"),
    *("unstable-vec-map", "unstable-fn", "unstable-app", "abs", "min", "max", "not", "log2"),
    *("to-f64", "to-i64", "to-string", "py-call", "py-from-string", "py-to-string"),
)
COMPARES = ("=", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%")
DIRECTIVES = ("RULES", "FIRES", "float")

_END = r"(?![^\s()\";])"
"""A regular expression for the end of a name."""


def _kinds() -> Mapping[str, list[str]]:
    """The names of the vocabulary by kind: operators, and facts or guards."""
    from relax_egraph.egraph.rulebook.scope import vocabulary

    every = vocabulary()
    return {
        "operator": sorted(d.name for d in every if d.kind == "constructor"),
        "fact": sorted(d.name for d in every if d.kind != "constructor"),
    }


def grammar() -> str:
    """A TextMate grammar, for VS Code, Sublime Text, JetBrains and others."""
    kinds = _kinds()
    patterns = [
        {"include": "#comment"},
        {"include": "#string"},
        _match("constant.numeric", r"(?<![^\s()])-?(\d+(\.\d*)?([eE][-+]?\d+)?|inf)" + _END),
        _match("constant.numeric", r"(?<![^\s()])NaN" + _END),
        _match("constant.language", _one_of(("true", "false"))),
        _match("storage.type", r"(?<=\()" + _one_of(DECLARES)),
        _match("keyword.control", r"(?<=\()" + _one_of((*RULES, *ACTIONS, *RUNS))),
        _match("keyword.other.option", _one_of(OPTIONS)),
        _match("invalid.illegal.option", r"(?<![^\s()]):[^\s()\";]*"),
        _match("support.function.operator", _one_of(kinds["operator"])),
        _match("invalid.illegal.operator", r"(?<![^\s()])(R|K|Prim)\.[^\s()\";]*"),
        _match("support.function.fact", _one_of(kinds["fact"])),
        _match("keyword.operator", r"(?<=\()" + _one_of(COMPARES)),
        _match("support.function.primitive", r"(?<=\()" + _one_of(PRIMITIVES)),
        _match("support.type", _one_of(SORTS)),
        _match("entity.name.function", r"(?<=\()[^\s()\";]+"),
        _match("variable.other.global", r"\$[^\s()\";]*"),
        _match("variable.language", r"(?<![^\s()])_" + _END),
        _match("variable.parameter", r"[^\s()\";]+"),
        _match("punctuation.section", r"[()]"),
    ]
    whole = {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "egglog rules",
        "scopeName": "source.egg",
        "fileTypes": ["egg"],
        "patterns": patterns,
        "repository": {
            "comment": {
                "name": "comment.line.egg",
                "begin": ";",
                "end": "$",
                "patterns": [
                    _match("keyword.other.directive", rf"(?<=; )({'|'.join(DIRECTIVES)}):"),
                    _match("markup.separator", r"(?<=; )-----$"),
                ],
            },
            "string": {
                "name": "string.quoted.egg",
                "begin": '"',
                "end": '"',
                "patterns": [_match("constant.character.escape", r"\\.")],
            },
        },
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _match(scope: str, pattern: str) -> dict[str, str]:
    return {"name": f"{scope}.egg", "match": pattern}


def _one_of(names: Sequence[str]) -> str:
    """A regular expression for a whole name among `names`."""
    escaped = "|".join(re.sub(r"([.*+$?|/])", r"\\\1", name) for name in names)
    return rf"(?<![^\s()])(?:{escaped}){_END}"


def vim_syntax() -> str:
    """A syntax file for Vim."""
    kinds = _kinds()
    groups = (
        ("Keyword", "eggRule", RULES),
        ("Statement", "eggAction", (*ACTIONS, *RUNS)),
        ("Structure", "eggDeclares", DECLARES),
        ("Type", "eggSort", SORTS),
        ("Boolean", "eggBoolean", ("true", "false")),
        ("Number", "eggNumber", ("NaN", "inf", "-inf")),
        ("Function", "eggOperator", kinds["operator"]),
        ("Special", "eggFact", kinds["fact"]),
        ("Operator", "eggPrimitive", PRIMITIVES),
        ("PreProc", "eggOption", OPTIONS),
    )
    directives = r"\|".join(DIRECTIVES)
    lines = [
        "\" Rules and their tests, in egglog's notation.  Generated: relax-egraph rules vocabulary",
        "if exists('b:current_syntax') | finish | endif",
        "syntax case match",
        "syntax iskeyword 33,35-39,42-58,60-126,128-255",
        "",
        r"syntax match eggHead /(\@1<=\k\+/",
        r"syntax match eggUnknown /\<\%(R\|K\|Prim\)\.\k*/",
        r"syntax match eggUnknown /\<:\k*/",
        r"syntax match eggGlobal /\$\k\+/",
        r"syntax match eggNumber /\<-\?\d\+\%(\.\d*\)\?\%([eE][-+]\?\d\+\)\?\>/",
        r'syntax region eggString start=/"/ skip=/\\./ end=/"/ contains=@Spell',
        "syntax match eggComment /;.*$/ contains=eggDirective,@Spell",
        rf"syntax match eggDirective /; \zs\%({directives}\):/ contained",
        "",
    ]
    for _, group, names in groups:
        lines += [f"syntax keyword {group} {row}" for row in _rows(names)]
    linked = {group: of for of, group, _ in groups} | {
        "eggHead": "Identifier",
        "eggUnknown": "Error",
        "eggGlobal": "Constant",
        "eggNumber": "Number",
        "eggString": "String",
        "eggComment": "Comment",
        "eggDirective": "SpecialComment",
    }
    lines += ["", *(f"highlight default link {group} {of}" for group, of in linked.items())]
    return "\n".join((*lines, "", "let b:current_syntax = 'egg'", ""))


def _rows(names: Iterable[str]) -> list[str]:
    """`names`, wrapped into lines."""
    rows = [""]
    for name in names:
        if len(rows[-1]) + len(name) > 70:
            rows.append("")
        rows[-1] = f"{rows[-1]} {name}".strip()
    return rows


def snippets() -> str:
    """Snippets for VS Code: a name completes to an application with placeholders."""
    from relax_egraph.egraph.rulebook.scope import vocabulary

    snippet_by_name: dict[str, Any] = {}
    for d in vocabulary():
        places = (f"${{{k}:{p.name}}}" for k, p in enumerate(d.params, 1))
        snippet_by_name[d.name] = {
            "scope": "egg",
            "prefix": d.name,
            "body": " ".join((d.name, *places)),
            "description": f"{d.usage}: {d.meaning}",
        }
    return json.dumps(snippet_by_name, indent=1, ensure_ascii=False) + "\n"


def words() -> str:
    """A word list with one name a line."""
    from relax_egraph.egraph.rulebook.scope import vocabulary

    return "".join(f"{d.name}\n" for d in vocabulary())


FORMS: Mapping[str, Callable[[], str]] = {
    "textmate": grammar,
    "vim": vim_syntax,
    "snippets": snippets,
    "words": words,
}
"""The generators of editor files, by name."""
