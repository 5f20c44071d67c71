"""The command ``relax-egraph``: what is done with programs, e-graphs, rules and machines.

Exit status: 0 done, 1 the model or its input is wrong or a check failed, 2 wrong use.
"""

from relax_egraph.cli.group import commands as commands


def main(argv: list[str] | None = None) -> None:
    """Run the command, and exit."""
    commands.main(args=argv, prog_name="relax-egraph")
