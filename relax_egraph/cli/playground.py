"""``relax-egraph play``: serves the playground, a page in which rules are tried."""

import os
import webbrowser
from pathlib import Path

import click

from relax_egraph.cli import values
from relax_egraph.cli.group import commands


@commands.command("play")
@click.argument("files", nargs=-1, type=values.EXISTING, metavar="[RULES.egg] [MODEL]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="The port, by default any free one.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=20.0,
    show_default=True,
    help="The most time of one evaluation.",
)
@click.option(
    "--memory",
    type=click.FloatRange(min=1),
    default=3.0,
    show_default=True,
    metavar="GIB",
    help="The most memory of one evaluation.",
)
@click.option("--browser", is_flag=True, help="Open the page in a browser.")
def play(files: tuple[Path, ...], port: int, seconds: float, memory: float, browser: bool) -> None:
    """Try rules in a page that shows what they do as they are typed.

    The page is served to this machine alone, at an address with a token in it, and loads nothing
    from elsewhere. MODEL is a program in script form, or a model of another system; without one,
    ten worked examples are there to choose from.
    """
    rules = [file for file in files if file.suffix == ".egg"]
    models = [file for file in files if file.suffix != ".egg"]
    if len(rules) > 1 or len(models) > 1:
        raise click.UsageError("needs at most one rule file (.egg) and one model")
    from relax_egraph.play.server import PlayServer, serve
    from relax_egraph.play.start import start_of
    from relax_egraph.workers.process import Limits

    start = start_of(next(iter(rules), None), next(iter(models), None))
    limits = Limits(seconds, int(memory * (1 << 30)))
    server = PlayServer(start, limits, max(2, os.cpu_count() or 1), port)
    click.echo(f"{server.address}\nends with Ctrl-C")
    if browser:
        webbrowser.open(server.address)
    serve(server)
