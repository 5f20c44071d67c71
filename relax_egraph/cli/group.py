"""What the commands belong to: their order, their version, and what becomes of errors."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from relax_egraph.cli.versions import versions
from relax_egraph.errors import RelaxEgraphError

EPILOG = """\
MODEL is an ONNX model (.onnx), a program in script form, or an executable that optimize
has saved (.rxe).

Exit status: 0 done, 1 the model or its input is wrong or a check failed, 2 wrong use.
"""


class Unusable(click.ClickException):
    """What is asked for needs something that is not there."""

    exit_code = 2


MODULES: Mapping[str, Sequence[str]] = {
    "show": ["show"],
    "optimize": ["optimize"],
    "explain": ["explain"],
    "run": ["run"],
    "bench": ["bench"],
    "profile": ["profile"],
    "memory": ["memory"],
    "extract": ["egraphs"],
    "why-not": ["why_not"],
    "bisect": ["bisect"],
    "rules": ["rules", "check", "rule_show", "rule_tests"],
    "calibrate": ["machine"],
}
"""The modules of each command, which are loaded when it is used.

Help lists the commands in this order, as they are met on the way with a model.
"""


class Commands(click.Group):
    """The commands; errors of this package are one message and status 1."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of `MODULES`."""
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, loaded."""
        for module in MODULES.get(cmd_name, ()):
            import_module(f"relax_egraph.cli.{module}")
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that `ctx` says."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader has seen enough: click ends quietly
        except RelaxEgraphError as error:
            raise click.ClickException(str(error)) from None
        except OSError as error:
            where = "" if error.filename is None else f"{error.filename}: "
            raise click.ClickException(f"{where}{error.strerror or error}") from None
        except ImportError as error:
            raise Unusable(str(error)) from None
        except MemoryError as error:
            raise click.ClickException(f"out of memory: {error}".removesuffix(": ")) from None


def _print_versions(ctx: click.Context, option: click.Parameter, given: bool) -> None:
    if given and not ctx.resilient_parsing:
        click.echo("\n".join(f"{name:<12} {version}" for name, version in versions().items()))
        ctx.exit()


@click.group(cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_versions,
    help="Print the versions of what computes, and the processor.",
)
def commands() -> None:
    """Optimize tensor programs and ONNX models with rewrite rules on e-graphs."""
