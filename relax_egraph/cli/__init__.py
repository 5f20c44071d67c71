"""The command ``relax-egraph``, with subcommands for models, e-graphs, rules and machines.

Exit status: 0 success, 1 an error in the model or its input, or a failed check, 2 a usage error,
130 an interruption.
"""

from relax_egraph.cli.group import commands as commands


def main(argv: list[str] | None = None) -> None:
    """Run the command, and exit."""
    commands.main(args=argv, prog_name="relax-egraph")
