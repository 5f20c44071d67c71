"""What a file says of its functions, read without the rest."""

from pathlib import Path

import pytest

from relax_egraph import build, parse
from relax_egraph.errors import ExecutableError, UnknownFunction
from relax_egraph.vm import Executable
from relax_egraph.vm.declarations import declarations
from relax_egraph.vm.file_map import bytes_of
from relax_egraph.vm.sections import read_sections
from tests.support.native import MODULE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "model.rxe"
    build(parse(MODULE)).save(path)
    return path


def damaged(path: Path, section: str) -> None:
    """Change the first byte of `section`."""
    content = read_sections(bytes_of(path, mapped=False))[section]
    data = bytearray(path.read_bytes())
    at = data.index(content.tobytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_they_are_those_of_the_executable(path: Path) -> None:
    executable, declared = Executable.load(path), declarations(path)

    assert declared.functions == executable.functions
    assert declared["main"] == executable["main"]
    assert declared.interfaces == executable.interfaces
    assert declared.interfaces
    with pytest.raises(UnknownFunction, match="no function 'mian' in the executable; there are"):
        declared["mian"]


@pytest.mark.parametrize("section", ["functions", "metadata"])
def test_a_damage_of_what_is_read_is_seen(path: Path, section: str) -> None:
    damaged(path, section)

    with pytest.raises(ExecutableError, match=f"section {section}: the checksum does not match"):
        declarations(path)


def test_a_damage_elsewhere_is_seen_by_the_loader(path: Path) -> None:
    damaged(path, "objects")

    assert declarations(path)["main"].params == ("x", "w")
    with pytest.raises(ExecutableError, match="section objects"):
        Executable.load(path)


def test_a_file_that_is_cut_off_is_refused(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(ExecutableError, match="are not in a file of"):
        declarations(path)
