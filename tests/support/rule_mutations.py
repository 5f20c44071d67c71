"""Damage to rule files: of arbitrary characters, and of balanced forms."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random

from relax_egraph import rules

_TOKEN = re.compile(r'"[^"]*"|;[^\n]*\n|[()]|[^\s()";]+|\s+')
_NUMBERS = ("-1", "0", "1", "2", "7", "99", "9223372036854775807", "9223372036854775808", "-0.0")
_OTHER = (
    *("0.5", "1e400", "nan", "inf", "true", "false", '""', '"float32"', '"float16"', '"n"', '"a\\'),
    *("x", "t", "_", "R.exp", "R.add", "R.sum", "R.nn.softmax", "R.none", "R.const", "K.exp"),
    *("=", "!=", "<", "union", "set", "let", "delete", "subsume", "panic", "check", "extract"),
    *("rewrite", "birewrite", "rule", "relation", "function", "ruleset", "datatype", "run", "sort"),
    *("vec-of", "vec-get", "vec-length", "vec-empty", "vec-range", "vec-remove", "vec-append"),
    *("unstable-fn", "unstable-app", "py-call", "py-eval", "shape-of", "dtype-of", "rank-of"),
    *("DimSym", "DimMul", "DimFloorDiv", ":name", ":ruleset", ":when", ":merge", ":cost", ";", "ü"),
)


def mutated(seed: int) -> tuple[str, str]:
    """Some forms of the book with a damage chosen by `seed`, and the name of its kind."""
    random = Random(seed)
    forms = _forms()
    first = random.randrange(len(forms))
    text = "\n".join(forms[first : first + random.choice((1, 1, 2, 4))])
    kind = random.choice([*_KINDS, *("alike",) * len(_KINDS)])
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        text = _KINDS[kind](random, text)
    return kind, text


@cache
def _forms() -> Sequence[str]:
    """Forms of all families with new names, in rulesets of their own."""
    forms: list[str] = []
    for family in rules.FAMILIES:
        text = re.sub(r':name "', ':name "my-', rules.text(family))
        text = re.sub(rf":ruleset {family}\b", "", text)
        whole = re.split(r"\n(?=\()", re.sub(r"^;.*\n", "", text, flags=re.M))
        forms += [form for form in whole if form.startswith(("(rule", "(rewrite", "(birewrite"))]
    return forms


def _words(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _places(words: Sequence[str]) -> list[int]:
    """The indices of names, numbers and texts."""
    return [k for k, w in enumerate(words) if not w.isspace() and w not in ("(", ")")]


def _exchanged(random: Random, text: str) -> str:
    words = _words(text)
    places = _places(words)
    if len(places) > 1:
        a, b = random.sample(places, 2)
        words[a], words[b] = words[b], words[a]
    return "".join(words)


def _replaced(random: Random, text: str) -> str:
    words = _words(text)
    if places := _places(words):
        other = _words(random.choice(_forms()))
        elsewhere = other[random.choice(_places(other))]
        words[random.choice(places)] = random.choice(
            (elsewhere, elsewhere, random.choice(_OTHER), random.choice(_NUMBERS))
        )
    return "".join(words)


def _left_out(random: Random, text: str) -> str:
    words = _words(text)
    if places := _places(words):
        del words[random.choice(places)]
    return "".join(words)


def _repeated(random: Random, text: str) -> str:
    words = _words(text)
    if places := _places(words):
        k = random.choice(places)
        words[k] += f" {words[random.choice(places)]}"
    return "".join(words)


def _groups(words: Sequence[str]) -> list[tuple[int, int]]:
    """The spans of all forms, including nested ones."""
    spans: list[tuple[int, int]] = []
    opened: list[int] = []
    for k, word in enumerate(words):
        if word == "(":
            opened.append(k)
        elif word == ")" and opened:
            spans.append((opened.pop(), k + 1))
    return spans


def _regrouped(random: Random, text: str) -> str:
    """A form in place of another, which may be within it, or of a name."""
    words = _words(text)
    groups = _groups(words)
    if not groups:
        return text
    start, end = random.choice(groups)
    form = words[start:end]
    first, last = random.choice(groups)
    match random.randrange(4):
        case 0:
            del words[first:last]
        case 1:
            words[first:last] = form
        case 2 if places := _places(words):
            k = random.choice(places)
            words[k : k + 1] = form
        case _:
            words[last:last] = [" ", *form]
    return "".join(words)


def _of_characters(random: Random, text: str) -> str:
    place = random.randrange(len(text) + 1)
    match random.randrange(4):
        case 0:
            return text[:place]
        case 1:
            return text[place:]
        case 2:
            return text[:place] + text[place + random.randrange(1, 4) :]
        case _:
            return text[:place] + random.choice('()";:\\\0 ü\n\t1-') + text[place:]


def _of_names(random: Random, text: str) -> str:
    """Little is left: words without a form, like the name of a file."""
    words = [w for w in _words(text) if w not in ("(", ")") and not w.startswith(";")]
    start = random.randrange(len(words) or 1)
    left = "".join(words[start : start + random.randrange(1, 8)]).replace("\n", " ").strip()
    return left + random.choice(("", "", ".egg", "/", "x" * 300, " (x).egg"))


def _sort(word: str) -> str:
    """The kind of a word: words of another kind are mostly refused by their sort."""
    if re.fullmatch(r"-?[0-9.]+(e-?[0-9]+)?", word):
        return "float" if "." in word or "e" in word else "integer"
    if word[0] in '":;':
        return word[0]
    head, _, name = word.partition(".")
    return head if name else "name"


def _alike(random: Random, text: str) -> str:
    """A word in place of one of its kind: the result is often a rule with another meaning."""
    words = _words(text)
    places = [k for k in _places(words) if _sort(words[k]) not in (":", ";")]
    if not places:
        return text
    k = random.choice(places)
    sort = _sort(words[k])
    same = [words[p] for p in places if _sort(words[p]) == sort]
    if sort == "integer":
        same += _NUMBERS[:-1]
    if sort in ("R", "K"):
        other = _words(random.choice(_forms()))
        same += [w for w in other if _sort(w) == sort]
    words[k] = random.choice(same)
    return "".join(words)


_KINDS: Mapping[str, Callable[[Random, str], str]] = {
    "alike": _alike,
    "exchanged": _exchanged,
    "replaced": _replaced,
    "left out": _left_out,
    "repeated": _repeated,
    "regrouped": _regrouped,
    "characters": _of_characters,
    "names": _of_names,
}
