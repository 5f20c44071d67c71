"""Every example on a page is run, and prints what the page says."""

from pathlib import Path

import pytest

from docs.site.sources import written
from tests.support.pages import Output, Session, blocks, corrected, missing

EXAMPLES = {
    place: file
    for place, file in written().items()
    if any(block.is_example for block in blocks(file.read_text("utf-8")))
}


@pytest.mark.parametrize("place", EXAMPLES)
def test_the_examples_of_a_page_are_true(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.chdir(tmp_path)
    page, session = EXAMPLES[place].read_text("utf-8"), Session()

    wrong = list[Output]()
    for block in blocks(page):
        if absent := missing(block):
            pytest.skip(f"the page needs {', '.join(absent)}, and was run up to there")
        wrong += [output for output in session.outputs(block) if not output.agrees]

    if pytestconfig.getoption("--bless"):
        EXAMPLES[place].write_text(corrected(page, wrong), "utf-8")
    else:
        assert [output.actual for output in wrong] == [output.expected for output in wrong]
