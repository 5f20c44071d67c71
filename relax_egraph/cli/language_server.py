"""``relax-egraph lsp``: serves an editor."""

import click

from relax_egraph.cli.group import Unusable, commands
from relax_egraph.cli.modules import import_modules


@commands.command("lsp")
@click.option(
    "--import",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="A Python module to import first: it registers functions that rules call.",
)
def serve(modules: tuple[str, ...]) -> None:
    """Serve an editor by the Language Server Protocol.

    An editor starts it for rule files, on standard input and output; editors/README.md says how.
    Needs pip install 'relax-egraph[lsp]'.
    """
    import_modules(modules)
    try:
        from relax_egraph.lsp.server import new_server
    except ModuleNotFoundError as missing:
        if missing.name not in ("pygls", "lsprotocol"):
            raise
        needed = "the language server needs pygls: pip install 'relax-egraph[lsp]'"
        raise Unusable(needed) from None
    new_server().start_io()
