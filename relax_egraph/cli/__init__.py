"""The command ``relax-egraph``: what is done with programs, e-graphs, rules and machines.

Exit status: 0 done, 1 the program or its input is wrong, 2 wrong use.
"""

import sys

import click

from relax_egraph.cli import egraphs, machine, memory, profile, programs, rules
from relax_egraph.cli.group import commands as commands
from relax_egraph.cli.programs import STAGES as STAGES
from relax_egraph.errors import RelaxEgraphError

SUBCOMMANDS = (programs, memory, profile, egraphs, machine, rules)
"""The modules whose commands belong to it, by being imported."""


def main(argv: list[str] | None = None) -> None:
    """Run the command; errors of this package are one message on stderr and status 1."""
    try:
        commands.main(args=argv, standalone_mode=True)
    except (RelaxEgraphError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
