"""Where names are declared and used: in the file that is edited, and in the book."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from relax_egraph.authoring.names import Name, Names
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.errors import RelaxEgraphError
from relax_egraph.lsp.book import book_names, declarations, declared_in, known_names


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a file, between two offsets."""

    source: Source
    start: int
    end: int


class NotRenamed(RelaxEgraphError, ValueError):
    """A name cannot get another one."""


def definition(names: Names, name: Name) -> Place | None:
    """Where `name` is declared; a variable, where it is first used."""
    if name.kind == "variable":
        first = next(names.of(name))
        return _place(names, first)
    here = declared_in(names, name.text, name.kind)
    if here is not None:
        return _place(names, here)
    other = declarations().get((name.text, name.kind))
    there = other and declared_in(other, name.text, name.kind)
    return _place(other, there) if other and there else None


def references(names: Names, name: Name, family: str) -> Iterator[Place]:
    """Where `name` occurs: in the file, and in the book if that knows it.

    The file is that of `family`, if it is one of the book.
    """
    yield from (_place(names, use) for use in names.of(name))
    if name.kind != "variable" and _is_shared(names, name, family):
        for other in book_names(family):
            yield from (_place(other, use) for use in other.of(name))


def renamed(names: Names, name: Name, text: str, family: str) -> Iterator[Place]:
    """The places to change where `name` becomes `text`; raises `NotRenamed`."""
    if not _NAME.fullmatch(text) or text[0].isdigit():
        raise NotRenamed(f"{text!r} is no name: it has letters, digits and -, and no spaces")
    if name.kind in ("table", "sort") and name.text in known_names():
        raise NotRenamed(f"{name.text} is part of the vocabulary")
    if not family and name.kind != "variable" and not declared_in(names, name.text, name.kind):
        raise NotRenamed(f"{name.text} is declared in another file: rename it there")
    known = known_names() if name.kind == "table" else ()
    taken = any(other.text == text and _meets(other, name) for other in names.every)
    if taken or text in known or (text, name.kind) in declarations():
        raise NotRenamed(f"{text} is there already")
    return references(names, name, family)


_NAME = re.compile(r"[^\s()\";:]+")


def _meets(other: Name, name: Name) -> bool:
    """Whether a name would be confused with another one of the same text."""
    in_one_form = name.kind != "variable" or other.form is name.form
    return other.kind == name.kind and in_one_form


def _is_shared(names: Names, name: Name, family: str) -> bool:
    """Whether a name of the file is one of the book, too."""
    return bool(family) or not declared_in(names, name.text, name.kind)


def _place(names: Names, name: Name) -> Place:
    return Place(names.source, name.start, name.end)
