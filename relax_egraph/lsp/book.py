"""What is known besides the text that is edited: the vocabulary, and names in the book's files."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from relax_egraph import rules
from relax_egraph.authoring.names import Name, Names, names_in
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.egraph.rulebook.scope import declarations_in, vocabulary
from relax_egraph.egraph.rulebook.vocabulary import Declaration

FOLDER = Path(rules.__file__).resolve().parent
"""The folder of the book's files."""


@cache
def known_names() -> dict[str, Declaration]:
    """The vocabulary by name."""
    return {declaration.name: declaration for declaration in vocabulary()}


@cache
def family_names(family: str) -> Names:
    """The names in the file of a family of the book."""
    return names_in(Source(str(FOLDER / f"{family}.egg"), rules.text(family)))


def family_of(path: Path | None) -> str:
    """The family of the book whose file is at `path`; empty for other files."""
    if path is None or path.suffix != ".egg" or path.resolve().parent != FOLDER:
        return ""
    return path.stem if path.stem in (*rules.FACTS, *rules.FAMILIES) else ""


def book_names(besides: str = "") -> Iterator[Names]:
    """The names in the files of the book, but for the family `besides`."""
    return (family_names(f) for f in (*rules.FACTS, *rules.FAMILIES) if f != besides)


@cache
def book_tables() -> tuple[Declaration, ...]:
    """The relations, functions and constructors that the files of the book declare."""
    return tuple(d for names in book_names() for form in names.forms for d in declarations_in(form))


def tables_with(names: Names) -> dict[str, Declaration]:
    """What the vocabulary, the book and a file declare, by name."""
    own = (declared for form in names.forms for declared in declarations_in(form))
    return {d.name: d for d in (*known_names().values(), *book_tables(), *own)}


@cache
def declarations() -> dict[tuple[str, str], Names]:
    """The file of the book that declares a name, by text and kind."""
    return {(name.text, name.kind): names for names in book_names() for name in names.declared()}


def declared_in(names: Names, text: str, kind: str) -> Name | None:
    """The declaration of a name in a file."""
    return next((n for n in names.declared() if (n.text, n.kind) == (text, kind)), None)
