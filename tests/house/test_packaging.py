"""The checkout and the build agree on what the package is made of."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import relax_egraph as rx

ROOT = Path(__file__).parents[2]
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


def test_the_version_is_the_same_everywhere_and_dated() -> None:
    dated = re.findall(r"^## \[(.+)\] - (\d{4}-\d\d-\d\d)$", _text("CHANGELOG.md"), re.MULTILINE)

    assert rx.__version__ == PROJECT["project"]["version"] == dated[0][0]


def test_the_readme_has_no_link_that_only_the_repository_can_follow() -> None:
    links = re.findall(r"\]\(([^)]*)\)", _text(PROJECT["project"]["readme"]))

    assert [link for link in links if not link.startswith("https://")] == []


def test_what_the_readme_names_is_there() -> None:
    """Paths of folders and files, in place of links."""
    rows = [row for row in _text("README.md").splitlines() if row.startswith("| `")]
    paths = [path for row in rows for path in re.findall(r"`([^`]+)`", row.split("|")[1])]

    assert len(paths) > 10
    assert [p for p in paths if not (ROOT / p).exists() and not (PACKAGE / p).exists()] == []


def test_the_package_is_a_command() -> None:
    command = [sys.executable, "-m", "relax_egraph", "--help"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)

    assert said.stdout.startswith("Usage: relax-egraph [OPTIONS] COMMAND")


def _text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


PACKAGE = ROOT / "relax_egraph"
