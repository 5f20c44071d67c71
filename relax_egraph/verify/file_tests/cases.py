"""File tests: programs in ``.egg`` files, with rules that must match and expected equalities.

Lines ``; -----`` separate the cases of a file.  The first comment line of a case is its title.  A
case defines terms by ``let``, runs rulesets, and checks that terms are equal or distinct.  Comments
at its head declare more:

    ; RULES: canon ../my.egg    once in a file: families of the book, and rule files beside it
    ; FIRES: cos-is-even        rules that must match in this case
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os.path import normpath
from pathlib import Path
from typing import Any

from relax_egraph import rules
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.rulebook.scope import near
from relax_egraph.errors import Span
from relax_egraph.ir.operators import Operators, in_force
from relax_egraph.verify.cases import SEPARATOR, directive


@dataclass(frozen=True, slots=True)
class FileTest:
    """A case: its place, title and text, the rules under test, and the rules that must match."""

    file: str
    line: int
    title: str
    text: str
    families: tuple[str, ...]
    rules: rules.Rules
    fires: tuple[str, ...]
    operators: Operators = field(default_factory=in_force)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.title}"

    @property
    def book(self) -> RuleBook:
        """The rules that run in the e-graph of the case."""
        families = tuple(f for f in self.families if f in rules.FAMILIES)
        return RuleBook.default(
            [self.rules] if self.rules.files else [],
            families=families,
            fast_math=True,
            bounded=True,
        )

    @property
    def equates(self) -> bool:
        """Whether a rule under test equates values."""
        return bool(self.rules.files) or not set(self.families) <= set(rules.FACTS)


@dataclass(frozen=True, slots=True)
class Failure:
    """An expectation of a case, at `line` of its file, and the lines that were `found` instead.

    `silent` is the rule that should have matched and has not.
    """

    line: int
    expected: str
    found: tuple[str, ...]
    silent: str = ""

    def __str__(self) -> str:
        head = f"{self.line:>4}  expected {self.expected}"
        return "\n      ".join((head, *self.found))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a test: the failures in order of lines, and the number of matches by rule."""

    test: FileTest
    failures: tuple[Failure, ...] = ()
    matches: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def passed(self) -> bool:
        """Whether all expectations of the case are met."""
        return not self.failures

    def __str__(self) -> str:
        return "\n".join((str(self.test), *map(str, self.failures)))

    def as_dict(self) -> dict[str, Any]:
        """The fields for JSON."""
        return {
            "file": self.test.file,
            "line": self.test.line,
            "title": self.test.title,
            "passed": self.passed,
            "matches": dict(self.matches),
            "failures": [
                {"line": f.line, "expected": f.expected, "found": list(f.found)}
                for f in self.failures
            ],
        }


def read_tests(path: Path, beside: Iterable[rules.Given] = ()) -> tuple[FileTest, ...]:
    """The cases of a file with checks, on the rules that the file names and those `beside`.

    Raises `RuleError` for syntax errors in the file or in rules, and for an unknown family.
    """
    ((name, text),) = rules.read([path]).files
    return cases_in(Source(name, text), path.parent, beside)


def cases_in(
    source: Source, folder: Path, beside: Iterable[rules.Given] = ()
) -> tuple[FileTest, ...]:
    """The cases of the text of a file in `folder`; like `read_tests`."""
    families, files = _under_test(source, folder)
    of_user = rules.read([*beside, *files])
    line, tests = 1, list[FileTest]()
    for part in SEPARATOR.split(source.text):
        if _CHECKS.search(part):
            fires = tuple(directive(part, "FIRES"))
            tests.append(FileTest(source.name, line, _title(part), part, families, of_user, fires))
        line += part.count("\n") + 1
    for test in tests[:1]:
        assert test.book  # reads the rules
    return tuple(tests)


def is_file_test(text: str) -> bool:
    """Whether a text has cases, and is no file of rules."""
    return bool(_CHECKS.search(text) or re.search(r"(?m)^; RULES: ", text))


_CHECKS = re.compile(r"^; FIRES: |^[^;\n]*\(check\b", re.MULTILINE)
_DIRECTIVE = re.compile(r"; (RULES|FIRES): ")


def _title(text: str) -> str:
    comments = (s[2:] for s in text.splitlines() if s.startswith("; "))
    return next((c for c in comments if not _DIRECTIVE.match(f"; {c}")), "(without a title)")


def _under_test(source: Source, folder: Path) -> tuple[tuple[str, ...], list[Path]]:
    """The families and the rule files that ``; RULES:`` comments name."""
    families, files = list[str](), list[Path]()
    known = (*rules.FACTS, *rules.FAMILIES)
    for comment in re.finditer(r"(?m)^; RULES: (.+)$", source.text):
        for word in re.finditer(r"\S+", comment[1]):
            span = source.span(comment.start(1) + word.start())
            if word[0].endswith(".egg"):
                file = Path(normpath(folder / word[0]))
                if not file.is_file():
                    raise source.error(span, f"there is no file {file}")
                files.append(file)
            elif word[0] in known:
                families.append(word[0])
            else:
                note = near(word[0], known) or "a rule file is named with its .egg"
                raise source.error(span, f"no family of rules is named {word[0]}", note)
    return tuple(families), files


def unseen(outcomes: Sequence[Outcome]) -> tuple[Rule, ...]:
    """The user's rules under test that matched in no case, in the order of their files."""
    matched = {name.rstrip("=><") for o in outcomes for name in o.matches}
    every: dict[Span, Rule] = {}
    for book in {o.test.book: None for o in outcomes}:
        every |= {r.span: r for r in book.rules if r.name in book.of_user}
    return tuple(rule for rule in every.values() if rule.name not in matched)


def book_tests() -> tuple[Path, ...]:
    """The file tests of the rule book in a checkout; an installation has none."""
    folder = Path(rules.__file__).resolve().parent.parent / "tests" / "rules"
    return tuple(sorted(folder.glob("*.egg")))
