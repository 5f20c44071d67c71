"""What the commands belong to."""

from pathlib import Path

import click

EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="relax-egraph")
def commands() -> None:
    """Optimize Relax-like tensor programs with rewrite rules on e-graphs."""
