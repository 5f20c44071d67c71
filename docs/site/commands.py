"""The page of the command ``relax-egraph``: every command with its help and options."""

from collections.abc import Iterator

import click

from docs.site.text import fenced
from relax_egraph.cli import commands

PLACE = "reference/commands.md"

_HEAD = """\
# The command relax-egraph

What `--help` prints, of every command.
"""


def pages() -> dict[str, str]:
    """The page by its place in the site."""
    return {PLACE: "\n\n".join((_HEAD, *_sections(commands, "relax-egraph", None)))}


def _sections(command: click.Command, path: str, parent: click.Context | None) -> Iterator[str]:
    name = path.rpartition(" ")[2]
    context = click.Context(command, parent, name, terminal_width=88, **command.context_settings)
    yield f"## {path}\n\n{fenced(command.get_help(context), 'text')}"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _sections(below, f"{path} {name}", context)
