"""Generated pages agree with the code, and pages name files that exist."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from docs import builtins, operators


@pytest.mark.parametrize("generated", [operators, builtins], ids=lambda m: m.__name__)
def test_the_page_is_that_of_the_code(generated: ModuleType, pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--bless"):
        generated.PAGE.write_text(generated.page(), encoding="utf-8")

    assert generated.PAGE.read_text(encoding="utf-8") == generated.page()


ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "relax_egraph"
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *PACKAGE.glob("*/README.md")]
PATH = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.py)`")


@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    names = sorted(set(PATH.findall(page.read_text("utf-8"))))

    missing = [n for n in names if not any((f / n).exists() for f in (ROOT, PACKAGE, page.parent))]
    below = {file.name for file in page.parent.rglob("*.py")}

    assert not [name for name in missing if "/" in name or name not in below]
