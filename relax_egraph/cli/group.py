"""The command group: order of commands, version, and error messages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar

import click

from relax_egraph.errors import Interrupted, RelaxEgraphError
from relax_egraph.versions import show_versions

Result = TypeVar("Result")

EPILOG = """\
MODEL is an ONNX model (.onnx), a program of torch.export (.pt2) or StableHLO (.mlir), a program in
script form, or an executable that optimize has saved (.rxe).

Exit status: 0 success, 1 an error in the model or its input, or a failed check, 2 a usage error,
130 an interruption.
"""

INTERRUPTED = 130
"""The exit status after an interruption, by convention 128 and the number of the signal."""


class Unusable(click.ClickException):
    """A request that needs something missing, such as a package."""

    exit_code = 2


def usable(request: Callable[[], Result]) -> Result:
    """The result of `request`; what it refuses with a ``ValueError`` is a usage error."""
    try:
        return request()
    except RelaxEgraphError:
        raise
    except ValueError as error:
        raise Unusable(str(error)) from None


@dataclass(slots=True)
class UntilInterrupted(Generic[Result]):
    """What long work has found; all of it, unless it was `interrupted`."""

    value: Result
    interrupted: Interrupted | None = None

    def end(self) -> None:
        """After all was printed: end the command if the work was interrupted."""
        if self.interrupted is not None:
            raise self.interrupted


def until_interrupted(work: Callable[[], Result]) -> UntilInterrupted[Result]:
    """The result of `work`, or what it had found when it was interrupted."""
    try:
        return UntilInterrupted(work())
    except Interrupted as stop:
        return UntilInterrupted(stop.done, stop)


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
    "diff": ["diff"],
    "replay": ["replay"],
    "rules": [
        *("rules", "check", "prove", "rule_show", "rule_tests", "rule_profile", "discovering"),
        "formatting",
    ],
    "lsp": ["language_server"],
    "play": ["playground"],
    "serve": ["serve"],
    "calibrate": ["machine"],
    "completion": ["completion"],
}
"""The module of each command, which is loaded at first use.

Help lists the commands in this order, which follows a typical use.
"""


class Commands(click.Group):
    """The commands; errors of this package are one message and status 1."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order of `MODULES`."""
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the command `cmd_name`."""
        for module in MODULES.get(cmd_name, ()):
            import_module(f"relax_egraph.cli.{module}")
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command of `ctx`."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # a closed pipe: click exits quietly
        except KeyboardInterrupt as stop:
            extent = f": {stop.extent}" if isinstance(stop, Interrupted) else ""
            click.echo(f"interrupted{extent}", err=True)
            ctx.exit(INTERRUPTED)
        except RelaxEgraphError as error:
            raise click.ClickException(str(error)) from None
        except OSError as error:
            where = "" if error.filename is None else f"{error.filename}: "
            raise click.ClickException(f"{where}{error.strerror or error}") from None
        except ImportError as error:
            raise Unusable(str(error)) from None
        except MemoryError as error:
            raise click.ClickException(f"out of memory: {error}".removesuffix(": ")) from None


def _print_versions(ctx: click.Context, option: click.Parameter, requested: bool) -> None:
    if requested and not ctx.resilient_parsing:
        show_versions()
        ctx.exit()


@click.group(cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_versions,
    help="Print the versions of the packages, and the processor.",
)
def commands() -> None:
    """Optimize tensor programs and ONNX models with rewrite rules on e-graphs."""
