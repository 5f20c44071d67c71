"""``relax-egraph calibrate``: measures this machine."""

import json
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

import relax_egraph as rx
from relax_egraph.base.progress import step
from relax_egraph.cli import options
from relax_egraph.cli.group import commands


@commands.command("calibrate")
@click.option(
    "--seconds",
    type=click.FloatRange(0, 3600),
    metavar="SECONDS",
    default=15.0,
    show_default=True,
    help="Duration of the measurement.",
)
@options.output("Save the profile to FILE instead of the cache.")
@options.as_json
def calibrate_machine(seconds: float, output: Path | None, as_json: bool) -> None:
    """Measure this machine and save its profile.

    By default, the profile is saved in the user's cache, and --machine calibrated uses it.
    """
    from relax_egraph.calibrate import calibrate, profile_file

    file = output or profile_file()
    if file is None:
        raise click.UsageError("RELAX_EGRAPH_CACHE is off: needs --output FILE")
    with step(f"measuring for {seconds:g} s"):
        profile = calibrate(seconds)
    profile.write(file)
    if as_json:
        click.echo(json.dumps({"file": str(file), **profile.as_dict()}))
    else:
        console = Console()
        console.print(_table(profile))
        console.print(f"saved as {file}", soft_wrap=True)


def _table(profile: "rx.Profile") -> Table:
    table = Table("what", "measured", title=f"{profile.name}, one core", title_justify="left")
    table.add_row("launch of a kernel", f"{profile.launch * 1e6:.2f} µs")
    for dtype, flops in profile.peak.items():
        table.add_row(f"arithmetic, {dtype}", f"{flops / 1e9:.0f} G/s")
    for level in profile.levels:
        level_text = f"up to {level.size / 2**20:.2f} MiB" if level.size < float("inf") else "more"
        table.add_row(f"memory, {level_text}", f"{level.bandwidth / 1e9:.0f} GB/s")
    return table
