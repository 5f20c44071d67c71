"""Every example on a page is run, and prints what the page says."""

import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from docs.site.sources import written
from relax_egraph.egraph.functions import function
from relax_egraph.vm import registry
from tests.support.pages import Output, Session, blocks, corrected, missing

FIRST = "tutorial/1-first-rule.md"
"""The page on which each command is a process of its own, as for whoever follows it."""

EXAMPLES = {
    place: file
    for place, file in written().items()
    if any(block.is_example for block in blocks(file.read_text("utf-8")))
}


@pytest.fixture
def page_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder for the page; what it imports and registers is forgotten after it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    imported = set(sys.modules)
    with patch.dict(function.FUNCTIONS), patch.dict(registry.REGISTERED):
        yield
    for name in set(sys.modules) - imported:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("place", EXAMPLES)
@pytest.mark.usefixtures("page_alone")
@pytest.mark.filterwarnings(
    "ignore:Using extra keyword arguments:DeprecationWarning"
)  # Ray Serve's
def test_the_examples_of_a_page_are_true(place: str, pytestconfig: pytest.Config) -> None:
    page, session = EXAMPLES[place].read_text("utf-8"), Session(processes=place == FIRST)

    wrong, absent = list[Output](), list[str]()
    for block in blocks(page):
        if absent := missing(block):
            break
        wrong += [output for output in session.outputs(block) if not output.agrees]

    if pytestconfig.getoption("--bless"):
        EXAMPLES[place].write_text(corrected(page, wrong), "utf-8")
    else:
        assert [output.actual for output in wrong] == [output.expected for output in wrong]
    if absent:
        pytest.skip(f"what follows needs {', '.join(absent)}; all before it was run")
