"""Which rules of the book match a name of the vocabulary, and which make it."""

from functools import cache

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import heads
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.verify.file_tests.cases import FileTest, book_tests, read_tests

BOOK = RuleBook.default(fast_math=True, bounded=True)


def matched(rule: Rule) -> list[str]:
    """The names that the premises and left sides of a rule have, in order."""
    return list(dict.fromkeys(n for d in rule.directions for n in d.reads))


def made(rule: Rule) -> list[str]:
    """The names in what a rule makes, in order."""
    results = ((*d.actions, d.right) for d in rule.directions)
    return list(dict.fromkeys(h for some in results for t in some if t for h in heads(t)))


@cache
def rules_by_name() -> dict[str, tuple[list[Rule], list[Rule]]]:
    """By name of the vocabulary, the rules that match it, and the rules that make it."""
    found: dict[str, tuple[list[Rule], list[Rule]]] = {}
    for rule in BOOK.rules:
        for kind, names in enumerate((matched(rule), made(rule))):
            for name in names:
                found.setdefault(name, ([], []))[kind].append(rule)
    return found


@cache
def cases_by_rule() -> dict[str, list[FileTest]]:
    """By rule, the file tests of the book in which it must fire."""
    found: dict[str, list[FileTest]] = {}
    for path in book_tests():
        for test in read_tests(path):
            for name in dict.fromkeys(fired.rstrip("=><") for fired in test.fires):
                found.setdefault(name, []).append(test)
    return found
