"""The page of the facade: every name of ``relax_egraph``, from its docstring."""

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import relax_egraph as rx

PLACE = "reference/api.md"

_HEAD = """\
# API

The names of `import relax_egraph as rx`; all else is reached through its room, such as
`relax_egraph.extract`.
"""


def subjects() -> dict[str, tuple[str, ...]]:
    """The names of the facade by subject, as the docstring of the package has them."""
    listed = re.findall(r"^\* ([^:]+): ((?:.|\n  )+)", rx.__doc__ or "", re.MULTILINE)
    return {subject: tuple(re.findall(r"`(\w+)`", names)) for subject, names in listed}


def pages() -> dict[str, str]:
    """The page by its place in the site."""
    parts = [_HEAD]
    for subject, names in subjects().items():
        parts.append(f"## {subject.capitalize()}\n")
        parts += [_entry(name) for name in names]
    return {PLACE: "\n".join(parts)}


def _entry(name: str) -> str:
    value = getattr(rx, name)
    if isinstance(value, ModuleType):
        return "\n".join([f"### rx.{name}\n", *_of_module(name, value)])
    return _directive(f"rx.{name}", value, level=3)


def _of_module(name: str, module: ModuleType) -> Iterator[str]:
    """The functions that a module offers; those that are made by others are listed."""
    made = list[str]()
    for function in public(module):
        value = getattr(module, function)
        if "<" in value.__qualname__:
            made.append(f"`{function}`")
        else:
            yield _directive(f"rx.{name}.{function}", value, level=4)
    if made:
        yield f"Functions of elements: {', '.join(made)}.\n"


def public(module: ModuleType) -> list[str]:
    """The functions that a module of the facade offers."""
    return [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__.startswith("relax_egraph")
        and not value.__module__.startswith("relax_egraph.base")
        and not name.startswith("_")
    ]


def _directive(name: str, value: Any, level: int) -> str:
    """What has mkdocstrings put the signature and the docstring of `value` here."""
    options = f"heading: {name}, toc_label: {name}, heading_level: {level}"
    path = f"{value.__module__}.{value.__qualname__}"
    return f"::: {path}\n    options: {{ {options} }}\n"
