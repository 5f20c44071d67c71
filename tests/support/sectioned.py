"""Files of executables, split into sections and reassembled with matching checksums."""

import numpy as np

from relax_egraph.vm.sections import chunks, read_sections


def contents_of(data: bytes) -> dict[str, bytes]:
    """The bytes of each section of a file."""
    sections = read_sections(np.frombuffer(data, np.uint8))
    return {name: content.tobytes() for name, content in sections.items()}


def assembled(contents: dict[str, bytes]) -> bytes:
    """The file with these sections."""
    return b"".join(chunks({name: [content] for name, content in contents.items()}))


def with_section(data: bytes, name: str, content: bytes) -> bytes:
    """The file `data` with the content of one section replaced."""
    return assembled({**contents_of(data), name: content})
