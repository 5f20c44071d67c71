"""Collects the file tests: every ``tests/rules/*.egg`` is a list of cases.

``relax_egraph.verify.file_tests`` says what a case is; ``relax-egraph rules test`` runs the same.
"""

import gc
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis
import pytest

from relax_egraph.lower.emit.target import Target
from relax_egraph.verify.file_tests.cases import FileTest, read_tests
from relax_egraph.verify.file_tests.run import run_test

hypothesis.settings.register_profile("suite", derandomize=True, deadline=None)
hypothesis.settings.register_profile("fuzz", print_blob=True, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))
"""The suite is the same in every run; ``make fuzz`` draws new examples."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep the kernels that tests compile out of the user's cache."""
    if config.pluginmanager.hasplugin("cacheprovider"):
        assert config.cache is not None
        os.environ["RELAX_EGRAPH_CACHE"] = str(config.cache.mkdir("objects"))
    else:
        folder = TemporaryDirectory()
        config.add_cleanup(folder.cleanup)
        os.environ["RELAX_EGRAPH_CACHE"] = folder.name
    if config.getoption("--replay"):
        from tests.support.replaying import Replaying

        config.pluginmanager.register(Replaying.of(config))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="rewrite what file tests expect")
    parser.addoption("--replay", action="store_true", help="prove and replay each optimization")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from looking through modules and tests, now and later.

    It looks less often through what tests allocate, which is a twentieth of their time else.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()


def pytest_make_parametrize_id(val: object) -> str | None:
    """The name of a target in the names of tests: its features have no order of their own."""
    return f"{val.cpu}-{val.vector_bits}" if isinstance(val, Target) else None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".egg" and file_path.parent.name == "rules":
        return RuleFile.from_parent(parent, path=file_path)
    return None


class RuleFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        for test in read_tests(self.path):
            item: RuleCase = RuleCase.from_parent(self, name=test.title)
            item.test = test
            yield item


class RuleCase(pytest.Item):
    test: FileTest

    def runtest(self) -> None:
        outcome = run_test(self.test)
        if not outcome.passed:
            raise CaseFailed("\n".join(map(str, outcome.failures)))

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None
    ) -> str:
        if isinstance(excinfo.value, CaseFailed):
            return f"{self.path.name}:{self.test.line}: {self.name}\n{excinfo.value}"
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.test.line - 1, self.name


class CaseFailed(AssertionError):
    """A case is not as it says."""
