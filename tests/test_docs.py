"""Pages that are generated say what the code says."""

import pytest

from docs.operators import PAGE, page


def test_the_operator_list_is_that_of_the_registry(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--bless"):
        PAGE.write_text(page(), encoding="utf-8")

    assert PAGE.read_text(encoding="utf-8") == page()
