"""The command ``relax-egraph``: what is done with programs, e-graphs, rules and machines.

Exit status: 0 done, 1 the model or its input is wrong or a check failed, 2 wrong use.
"""

from relax_egraph.cli import bench, egraphs, machine, memory, optimize, profile, rules, run, show
from relax_egraph.cli.group import commands as commands
from relax_egraph.cli.show import STAGES as STAGES

SUBCOMMANDS = (show, optimize, run, bench, profile, memory, egraphs, machine, rules)
"""The modules whose commands belong to it, by being imported."""


def main(argv: list[str] | None = None) -> None:
    """Run the command, and exit."""
    commands.main(args=argv, prog_name="relax-egraph")
