"""``relax-egraph completion``: the script by which a shell completes commands and options."""

import click
from click.shell_completion import get_completion_class

from relax_egraph.cli.group import commands

SHELLS = ("bash", "zsh", "fish")


@commands.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def print_completion(shell: str) -> None:
    """Print a script by which SHELL completes commands.

    For bash: eval "$(relax-egraph completion bash)" in ~/.bashrc.
    """
    kind = get_completion_class(shell)
    assert kind  # of each of `SHELLS`
    click.echo(kind(commands, {}, "relax-egraph", "_RELAX_EGRAPH_COMPLETE").source())
