"""Each lesson is a notebook, too: the same code in the same order, with the outputs of the page."""

import json
import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from docs.site.notebooks import lessons, notebook
from docs.site.sources import written
from tests.support.pages import blocks


@pytest.mark.parametrize("place", lessons())
def test_the_notebook_has_the_examples_of_the_page(place: str) -> None:
    page = written()[place.replace(".ipynb", ".md")].read_text("utf-8")
    expected = list[str]()
    for block in blocks(page):
        if block.is_file:
            expected.append(f"%%writefile {block.title}\n{block.text}")
        elif block.language == "console":
            expected += [f"!{line}" for line in re.findall(r"^\$ (.*)$", block.text, re.MULTILINE)]
        elif block.language == "python":
            expected.append(block.text)

    cells = json.loads(lessons()[place])["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]

    assert [cell["source"] for cell in code] == [text.strip("\n") for text in expected]
    assert sum(len(cell["outputs"]) for cell in code) > 0
    assert len({cell["id"] for cell in cells}) == len(cells)


def test_a_notebook_runs_and_shows_its_pictures(tmp_path: Path) -> None:
    page = written()["howto/pictures.md"].read_text("utf-8")
    book = nbformat.reads(notebook(page), as_version=4)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    NotebookClient(book, timeout=120, resources={"metadata": {"path": tmp_path}}).execute(
        env=environment
    )

    shown = [set(o.data) for c in book.cells for o in c.get("outputs", ()) if "data" in o]
    assert shown == [
        {"text/plain", "text/html"},
        {"text/plain", "image/svg+xml"},
        {"text/plain", "image/svg+xml"},
    ]
