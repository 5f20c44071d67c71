"""A run of one file test: its checks, the rules that match, and the values of equal nodes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from relax_egraph.egraph.recording.case_run import CaseRun, Fault, case_run
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.egraph.rulebook.scope import near
from relax_egraph.errors import RelaxEgraphError, RuleError
from relax_egraph.verify.file_tests.cases import Failure, FileTest, Outcome
from relax_egraph.verify.file_tests.equal_values import Unsound, check_sound

_SEEDS = range(3)

_TRIED = 24
"""The most rules that are left out in turn to find the culprits."""


def run_test(test: FileTest) -> Outcome:
    """Run a case in this process, without a time limit."""
    with test.operators.in_force():
        return _outcome(test)


def _outcome(test: FileTest) -> Outcome:
    book = test.book
    try:
        with case_run(book, source_of(test)) as run:
            faults = _faults(test, run)
            failures = [Failure(f.span.line, f.expected, f.found) for f in faults]
            failures += _silent(test, book, run)
            matches = {name: count for name, count in run.matches.items() if count}
    except RuleError as error:
        column = f"column {error.span.column}: " if error.span.column > 1 else ""
        lines = (f"{column}{error.message}", *str(error).splitlines()[1:])
        return Outcome(test, (Failure(error.span.line, "a program", lines),))
    except RelaxEgraphError as error:
        return Outcome(test, (Failure(test.line, "a program", (str(error),)),))
    blamed = _blamed(test, book, faults, matches)
    failures = sorted((blamed.get(f, f) for f in failures), key=lambda f: f.line)
    return Outcome(test, tuple(failures), matches)


def source_of(test: FileTest) -> Source:
    """The text of a case, at its line of the file."""
    return Source(test.file, "\n" * (test.line - 1) + test.text)


def _faults(test: FileTest, run: CaseRun) -> list[Fault]:
    """The checks that fail; if none does, a class with unequal values."""
    if run.faults or not test.equates:
        return run.faults
    tables = run.tables()
    for seed in _SEEDS:
        try:
            check_sound(tables, seed)
        except Unsound as unsound:
            place = source_of(test).span(test.line - 1)
            return [Fault(place, _ONE_VALUE, tuple(str(unsound).splitlines()))]
    return []


_ONE_VALUE = "each class to have one value"


def _silent(test: FileTest, book: RuleBook, run: CaseRun) -> Iterator[Failure]:
    """The rules that should have matched and have not."""
    fired = {name for name, count in run.matches.items() if count}
    fired |= {name.rstrip("=><") for name in fired}
    known = {*book.reading.scope.rules, *fired}
    for name in dict.fromkeys(test.fires):
        if name in fired:
            continue
        others = ", ".join(sorted(fired & {rule.name for rule in book.rewrites})) or "none"
        silent = name.rstrip("=><")
        if silent in known or f':name "{name}"' in test.text:
            reason = f"it matched nothing; rewrites that matched: {others}"
        else:
            reason = "; ".join(filter(None, ("there is no such rule", near(name, known))))
        yield Failure(_line_of(test, name), f"{name} to match", (reason,), silent)


def _line_of(test: FileTest, rule: str) -> int:
    """The line of the ``; FIRES:`` comment that names `rule`."""
    for k, line in enumerate(test.text.splitlines()):
        if line.startswith("; FIRES: ") and rule in line.split():
            return test.line + k
    return test.line


def _blamed(
    test: FileTest, book: RuleBook, faults: list[Fault], matches: Mapping[str, int]
) -> dict[Failure, Failure]:
    """The failures about values that should not be equal, each with the rules to blame."""
    wrong = [f for f in faults if f.expected == _ONE_VALUE or f.expected.startswith("(fail ")]
    matched = {name.rstrip("=><") for name in matches}
    rewrites = [rule.name for rule in book.rewrites if rule.name in matched][:_TRIED]
    needed: dict[Fault, list[str]] = {fault: [] for fault in wrong}
    for name in rewrites if wrong else ():
        less = replace(book, without=book.without | {name})
        try:
            with case_run(less, source_of(test)) as run:
                still = {(f.span, f.expected) for f in _faults(test, run)}
        except RelaxEgraphError:
            continue
        for fault in wrong:
            if (fault.span, fault.expected) not in still:
                needed[fault].append(name)
    blamed: dict[Failure, Failure] = {}
    for fault, names in needed.items():
        failure = Failure(fault.span.line, fault.expected, fault.found)
        culprits = (f"not so without {' or '.join(names)}",) if names else ()
        blamed[failure] = replace(failure, found=(*fault.found, *culprits))
    return blamed
