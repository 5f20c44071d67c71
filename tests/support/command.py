"""The command relax-egraph, run by a test in its own process."""

from click.testing import CliRunner, Result

from relax_egraph.cli import commands


def invoke(*args: object) -> Result:
    """How the command ends and what it says, in 120 columns; raises what it does not explain."""
    words = [str(arg) for arg in args]
    return CliRunner().invoke(commands, words, env={"COLUMNS": "120"}, catch_exceptions=False)
