"""The command relax-egraph, run by a test in its own process."""

from click.testing import CliRunner, Result

from relax_egraph.cli import commands


def invoke(*args: object) -> Result:
    """The result of the command, in 120 columns; unexplained exceptions are raised."""
    words = [str(arg) for arg in args]
    return CliRunner().invoke(commands, words, env={"COLUMNS": "120"}, catch_exceptions=False)
