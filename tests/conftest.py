"""Collects the file tests: every ``tests/rules/*.egg`` is a list of cases.

A case is a stretch of egglog between ``; -----`` lines, run over the vocabulary and the rules that
deduce facts, as far as they can matter to it.  Its header comments say which families are under
test (``; RULES:``, once per file) and which rules must match at least once (``; FIRES:``).  What
rewrites prove equal is then computed on random inputs.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from egglog.bindings import EggSmolError, EGraph, RunScheduleOutput

from relax_egraph import rules
from relax_egraph.egraph.commands import prepared
from relax_egraph.egraph.rulebook import RuleBook
from relax_egraph.lower.emit.target import Target
from tests.soundness import Unsound, check_sound

hypothesis.settings.register_profile("suite", derandomize=True, deadline=None)
hypothesis.settings.register_profile("fuzz", print_blob=True, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))
"""The suite is the same in every run; ``make fuzz`` draws new examples."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep the kernels that tests compile out of the user's cache."""
    assert config.cache is not None
    os.environ["RELAX_EGRAPH_CACHE"] = str(config.cache.mkdir("objects"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="rewrite what file tests expect")


def pytest_make_parametrize_id(val: object) -> str | None:
    """The name of a target in the names of tests: its features have no order of their own."""
    return f"{val.cpu}-{val.vector_bits}" if isinstance(val, Target) else None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".egg" and file_path.parent.name == "rules":
        return RuleFile.from_parent(parent, path=file_path)
    return None


class RuleFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        text = self.path.read_text("utf-8")
        families = tuple(f for f in directive(text, "RULES") if f in rules.FAMILIES)
        line = 1
        for case in re.split(r"(?m)^; -----\n", text):
            title = next(s[2:] for s in case.splitlines() if not s.startswith("; RULES"))
            item: RuleCase = RuleCase.from_parent(self, name=title)
            item.case, item.families, item.line = case, families, line
            yield item
            line += case.count("\n") + 1


class RuleCase(pytest.Item):
    case: str
    families: tuple[str, ...]
    line: int

    def runtest(self) -> None:
        book = RuleBook.default(families=self.families, fast_math=True, bounded=True)
        names = re.findall(r'[^\s()"]+', self.case)
        with prepared(book.where(names).texts) as egraph:
            self.run_on(egraph)

    def run_on(self, egraph: EGraph) -> None:
        padding = "\n" * (self.line - 1)  # so that errors point into the test file
        outputs = egraph.run_program(*egraph.parse_program(padding + self.case, self.path.name))
        fired = {
            rule
            for output in outputs
            if isinstance(output, RunScheduleOutput)
            for rule, matches in output.report.num_matches_per_rule.items()
            if matches
        }
        if silent := set(directive(self.case, "FIRES")) - fired:
            raise RuleDidNotFire(f"{', '.join(sorted(silent))} matched nothing")
        for seed in range(3) if self.families else ():
            check_sound(egraph, seed)

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None
    ) -> str:
        if isinstance(excinfo.value, EggSmolError | RuleDidNotFire | Unsound):
            return f"{self.path.name}:{self.line}: {excinfo.value}"
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.line - 1, self.name


class RuleDidNotFire(AssertionError):
    """A rule that the case names in ``; FIRES:`` never matched."""


def directive(text: str, name: str) -> list[str]:
    """The words behind every ``; NAME:``."""
    return [w for found in re.findall(rf"(?m)^; {name}: (.+)$", text) for w in found.split()]
