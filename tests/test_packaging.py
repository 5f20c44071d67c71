"""The checkout and the build agree on what the package is made of."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
SETUPTOOLS = PROJECT["tool"]["setuptools"]
PINS = (ROOT / "constraints.txt").read_text("utf-8").split()


@pytest.mark.parametrize(("package", "folder"), SETUPTOOLS["package-dir"].items())
def test_the_link_leads_to_the_folder(package: str, folder: str) -> None:
    assert ROOT.joinpath(*package.split(".")).resolve() == (ROOT / folder).resolve()


def test_every_package_is_listed() -> None:
    """A folder that is not listed would be missing from the wheel, silently."""
    found = {
        ".".join((package, *init.relative_to(ROOT / folder).parts[:-1]))
        for package, folder in SETUPTOOLS["package-dir"].items()
        for init in (ROOT / folder).rglob("__init__.py")
    }

    assert found == set(SETUPTOOLS["packages"])


def test_every_pin_is_a_name_and_a_version() -> None:
    assert [p for p in PINS if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", p)] == []


def test_every_dependency_is_pinned() -> None:
    groups = PROJECT["dependency-groups"]
    project = PROJECT["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["bench"]]
    asked += [*groups["test"], groups["dev"][1]]
    names = {re.split(r"[<>=\[]", a)[0].lower() for a in asked}

    assert names <= {p.split("==")[0].lower() for p in PINS}
