"""Pages that are generated say what the code says."""

from types import ModuleType

import pytest

from docs import builtins, operators


@pytest.mark.parametrize("generated", [operators, builtins], ids=lambda m: m.__name__)
def test_the_page_is_that_of_the_code(generated: ModuleType, pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--bless"):
        generated.PAGE.write_text(generated.page(), encoding="utf-8")

    assert generated.PAGE.read_text(encoding="utf-8") == generated.page()
