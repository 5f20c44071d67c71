"""The table of overloads is the one that the registry writes."""

import pytest

pytest.importorskip("torch")

from docs.torch_operators import FILE, table


def test_the_page_lists_the_converters() -> None:
    assert FILE.read_text("utf-8") == table()
