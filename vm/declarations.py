"""What a saved executable says of itself, read without its code, weights and kernels."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from relax_egraph.vm.executable import VMFunction, function_among
from relax_egraph.vm.file_map import bytes_of
from relax_egraph.vm.interfaces import Interface, interfaces_of
from relax_egraph.vm.reading import read_functions, read_metadata
from relax_egraph.vm.sections import read_sections


@dataclass(frozen=True, slots=True)
class Declarations:
    """The functions of an executable and its metadata; see `Executable`."""

    functions: tuple[VMFunction, ...]
    metadata: Mapping[str, str]

    def __getitem__(self, name: str) -> VMFunction:
        return function_among(self.functions, name)

    @property
    def interfaces(self) -> Mapping[str, Interface]:
        """See `Executable.interfaces`."""
        return interfaces_of(self.metadata)


def declarations(path: Path) -> Declarations:
    """Those of the file at `path`.

    Reads and checks the table of sections and the two that are needed: a damaged file is refused by
    `Executable.load` only, if the damage is elsewhere.  Raises `ExecutableError`.
    """
    sections = read_sections(bytes_of(path, mapped=True), ("functions", "metadata"))
    return Declarations(read_functions(sections), read_metadata(sections))
