"""``relax-egraph rules fmt``: brings rule files into canonical layout."""

import sys
from difflib import unified_diff
from pathlib import Path

import click

from relax_egraph.cli import values
from relax_egraph.cli.rules import rule_commands


@rule_commands.command("fmt")
@click.argument("files", nargs=-1, required=True, type=values.EXISTING, metavar="FILE.egg...")
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if a file would change.")
@click.option("--diff", is_flag=True, help="Change nothing; print what would change.")
def format_files(files: tuple[Path, ...], check: bool, diff: bool) -> None:
    """Bring each FILE, of rules or of file tests, into canonical layout.

    Spaces and indentation change, line breaks where a line is too long; tokens and comments stay.
    A file with a syntax error is left as it is, and is an error.
    """
    from relax_egraph.base.files import replacing
    from relax_egraph.egraph.rulebook.formatting import formatted
    from relax_egraph.egraph.rulebook.forms import Source
    from relax_egraph.rules import read

    texts = read(files).files
    changed = [(n, old, new) for n, old in texts if (new := formatted(Source(n, old))) != old]
    for name, old, new in changed:
        if diff:
            lines = unified_diff(old.split("\n"), new.split("\n"), name, name, lineterm="")
            click.echo("\n".join(lines))
        elif check:
            click.echo(f"{name} would change")
        else:
            with replacing(Path(name)) as file:
                file.write(new.encode("utf-8"))
            click.echo(f"{name} changed")
    if changed and (check or diff):
        sys.exit(1)
