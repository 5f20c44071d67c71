"""What takes long to find out of a rule: its check, its proof, the models in which it fires.

`answer` runs in a worker process: a question and an answer are data.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias

import relax_egraph as rx
from relax_egraph import rules
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.errors import RelaxEgraphError
from relax_egraph.ir.message import counted
from relax_egraph.verify.cases import Case, cases_of
from relax_egraph.verify.check import check_rules
from relax_egraph.verify.file_tests.cases import book_tests

Kind: TypeAlias = Literal["check", "prove", "fires"]

IMPORTERS: Mapping[str, Callable[[Path], rx.IRModule]] = {
    ".onnx": rx.from_onnx,
    ".pt2": rx.from_torch,
    ".mlir": rx.from_stablehlo,
    ".mlirbc": rx.from_stablehlo,
}
"""What reads a model of another system, by the suffix of its file."""

MODELS = tuple(IMPORTERS)
"""The suffixes of models."""

_MOST = 8
"""The most models that are optimized for one question."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about `rule`, a rule of the file with `text`, and perhaps about models.

    The file is that of `family`, if it is one of the book; the families behind that are left out.
    """

    kind: Kind
    rule: str
    file: str
    text: str
    family: str = ""
    folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """A few words, the whole text, and whether the rule is wrong."""

    words: str
    text: str
    is_wrong: bool = False


def answer(question: Question) -> Answer:
    """The answer; an error is one, too."""
    try:
        return _ANSWERS[question.kind](question)
    except ImportError as missing:
        return Answer("not installed", str(missing))
    except (RelaxEgraphError, ValueError) as error:
        return Answer("no answer", str(error))


def _book(question: Question) -> RuleBook:
    families = rules.FAMILIES
    if question.family in families:
        families = families[: families.index(question.family)]
    source = Source(question.file, question.text)
    return RuleBook(families, (source,), fast_math=True, bounded=True)


def _rule(book: RuleBook, name: str) -> Rule:
    return next(rule for rule in book.rules if rule.name == name)


def _checked(question: Question) -> Answer:
    (verdict,) = check_rules(_book(question), [question.rule], _cases())
    words = "not sound" if verdict.kind == "conditional" else verdict.kind
    if verdict.sound:
        words += f" in {counted(verdict.fired, 'instance')}"
    return Answer(words, str(verdict), not verdict.sound)


def _cases() -> tuple[Case, ...]:
    return tuple(c for path in book_tests() for c in cases_of(path.read_text("utf-8"), path.name))


def _proven(question: Question) -> Answer:
    from relax_egraph.prove.user_rules import prove_rules

    book = _book(question)
    rule = _rule(book, question.rule)
    if not any(direction.unites for direction in rule.directions):
        return Answer("equates nothing", f"{rule.name} deduces facts: there is nothing to prove")
    (verdict,) = prove_rules(book, [rule])
    return Answer(verdict.status, str(verdict), verdict.status == "refuted")


def _fires(question: Question) -> Answer:
    paths = list(islice(_models(question.folders), _MOST + 1))
    if not paths:
        names = ", ".join(MODELS)
        return Answer("no models", f"there is no model ({names}) in {', '.join(question.folders)}")
    book = _book(question)
    names = set(_rule(book, question.rule).reported)
    given = () if question.family else [rules.Rules(((question.file, question.text),))]
    lines: list[str] = []
    firing = 0
    for path in paths[:_MOST]:
        try:
            explanation = rx.explain(IMPORTERS[path.suffix](path), rules=given, fast_math=True)
        except (RelaxEgraphError, ImportError) as error:
            lines.append(f"{path}: {str(error).splitlines()[0]}")
            continue
        every = (m for r in explanation.regions for m in r.saturation.matches.items())
        count = sum(matches for name, matches in every if name in names)
        firing += count > 0
        lines.append(f"{path}: {counted(count, 'match', 'matches')}")
    lines += [f"only the first {_MOST} models were tried"] * (len(paths) > _MOST)
    words = f"fires in {firing} of {counted(min(len(paths), _MOST), 'model')}"
    return Answer(words, "\n".join(lines))


def _models(folders: Sequence[str]) -> Iterator[Path]:
    """The models in folders and below, besides those in hidden ones."""
    for folder in map(Path, folders):
        for path in sorted(folder.rglob("*")):
            inside = path.relative_to(folder).parts
            if path.suffix in MODELS and not any(part.startswith(".") for part in inside):
                yield path


_ANSWERS: Mapping[Kind, Callable[[Question], Answer]] = {
    "check": _checked,
    "prove": _proven,
    "fires": _fires,
}
