"""What is wrong in a rule file, as the loader says it, with the text that each error is about."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from relax_egraph.authoring.names import Names
from relax_egraph.egraph.rulebook.forms import Form, Source, atoms
from relax_egraph.egraph.rulebook.reader import Unread, read_all
from relax_egraph.egraph.rulebook.reading import check_family, reading_of
from relax_egraph.egraph.rulebook.rule import Entry, Rule
from relax_egraph.errors import RelaxEgraphError, RuleError
from relax_egraph.ir.operators import in_force
from relax_egraph.rules import FAMILIES
from relax_egraph.verify.file_tests.cases import cases_in, is_file_test

_SUGGESTED = re.compile(r"did you mean (\S+)\?")


@dataclass(frozen=True, slots=True)
class Problem:
    """An error, at the text between two offsets; `better` is what may stand there instead."""

    start: int
    end: int
    message: str
    better: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The problems of a text, and its rules by name where it has none."""

    problems: tuple[Problem, ...] = ()
    rules: Mapping[str, Rule] = field(default_factory=dict[str, Rule])


def diagnosis(names: Names, family: str = "", folder: Path = Path()) -> Diagnosis:
    """What the loader says of a rule file, or of a file test, which is in `folder`.

    A file of a `family` of the book is read after those before it; others after all of the book.
    """
    source = names.source
    try:
        if is_file_test(source.text):
            _read_cases(source, folder)
            return Diagnosis()
        entries = check_family(family, source) if family else _of_user(source)
        return Diagnosis((), {rule.name: rule for rule in entries if isinstance(rule, Rule)})
    except RuleError as error:
        every = (error.with_others(()), *error.others)
        return Diagnosis(tuple(_problem(source, names.forms, e) for e in every))
    except RelaxEgraphError as error:
        return Diagnosis((Problem(0, len(source.text), str(error)),))


def _read_cases(source: Source, folder: Path) -> None:
    """Read a file test; raises `RuleError`."""
    errors = [item.error for item in read_all(source) if isinstance(item, Unread)]
    if errors:
        raise errors[0].with_others(errors[1:])
    cases_in(source, folder)


def _of_user(source: Source) -> Sequence[Entry]:
    reading = reading_of(FAMILIES, (source,), in_force())
    return reading.entries[reading.of_book :]


def _problem(source: Source, forms: Iterable[Form], error: RuleError) -> Problem:
    """An error at the word where it is, or at the head of the form."""
    start = source.line_start(error.span.line - 1) + error.span.column - 1
    note = f"\n{error.note}" if error.note else ""
    better = _SUGGESTED.search(error.note)
    inside = (form for form in forms if form.start <= start < form.end)
    words = (atom for form in inside for atom in atoms(form) if start <= atom.start)
    word = next(words, None)
    if word and source.text[start : word.start].strip("(") == "":
        known = better[1] if better else ""
        return Problem(word.start, word.end, f"{error.message}{note}", known)
    return Problem(start, _end_of_word(source.text, start), f"{error.message}{note}")


def _end_of_word(text: str, start: int) -> int:
    word = re.compile(r"\(?[^\s()]*").match(text, start)
    return max(start + 1, word.end()) if word else start + 1
