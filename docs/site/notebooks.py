"""The lessons of the tutorial as notebooks: text, code, and the outputs that the pages state."""

import json
import re
from collections.abc import Iterator
from typing import Any

from docs.site import sources

_BLOCK = re.compile(
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```\n", re.M | re.S
)


def lessons() -> dict[str, str]:
    """By place in the site, the text of each notebook."""
    return {
        place.removesuffix(".md") + ".ipynb": notebook(file.read_text("utf-8"))
        for place, file in sources.written().items()
        if place.startswith("tutorial/")
    }


def notebook(page: str) -> str:
    """A page as a notebook: files are written by cells, commands run by cells."""
    cells = list(_cells(page))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    content = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _cells(page: str) -> Iterator[dict[str, Any]]:
    end, code = 0, dict[str, Any]()
    for block in _BLOCK.finditer(page):
        if text := page[end : block.start()].strip():
            yield _markdown(text)
        end = block.end()
        match block["language"], block["title"]:
            case "text", "prints":
                code["outputs"] = [_printed(block["text"])]
            case "python" | "egg", str(title):
                yield _code(f"%%writefile {title}\n{block['text']}", "")
            case "python", None:
                code = _code(block["text"], "")
                yield code
            case "console", None:
                for command in re.split(r"^\$ ", block["text"], flags=re.M)[1:]:
                    line, _, printed = command.partition("\n")
                    yield _code(f"!{line}", printed)
            case _:
                yield _markdown(block[0])
    if text := page[end:].strip():
        yield _markdown(text)


def _markdown(text: str) -> dict[str, Any]:
    """A cell of text; its links have no place to lead to but the site, and are left out."""
    plain = re.sub(r"\[([^\]]+)\]\((?!https?:)[^)\s]+\)", r"\1", text)
    return {"cell_type": "markdown", "metadata": {}, "source": plain}


def _code(text: str, printed: str) -> dict[str, Any]:
    outputs = [_printed(printed)] if printed else []
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}}
    return {**cell, "outputs": outputs, "source": text.strip("\n")}


def _printed(text: str) -> dict[str, Any]:
    return {"name": "stdout", "output_type": "stream", "text": text}
