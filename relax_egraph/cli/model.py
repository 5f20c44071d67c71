"""The argument MODEL: loading, optimizing and building it."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

import relax_egraph as rx
from relax_egraph.cli.progress import step
from relax_egraph.errors import ExecutableError, ModelError, RelaxEgraphError

if TYPE_CHECKING:
    from relax_egraph.optimize.explanation import Explanation

ONNX, EXECUTABLE = ".onnx", ".rxe"

How: TypeAlias = Mapping[str, Any]
"""Keywords of `relax_egraph.optimize`."""


def warn_of_assumed(assumed: Mapping[str, Sequence[int]]) -> None:
    """Warn on stderr about assumed sizes, with the options that set others."""
    if assumed:
        # Imports sympy, which saved files do not need.
        from relax_egraph.optimize.sizes import assumed_text

        hints = " ".join(f"--hint {name}=SIZE" for name in assumed)
        sizes = assumed_text(assumed)
        click.echo(
            f"warning: programs were compared at {sizes}; set other sizes by {hints}", err=True
        )


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file with a model; `shapes` override the extents of inputs of an ONNX model."""

    path: Path
    shapes: Mapping[str, Sequence[int | str]]

    def __post_init__(self) -> None:
        if self.shapes and not self.is_onnx:
            raise click.UsageError(f"{self}: --shape needs an ONNX model ({ONNX})")

    def __str__(self) -> str:
        return str(self.path)

    @property
    def is_onnx(self) -> bool:
        """Whether it is an ONNX model."""
        return self.path.suffix == ONNX

    @property
    def is_executable(self) -> bool:
        """Whether it is an executable, which contains no program."""
        return self.path.suffix == EXECUTABLE

    def module(self) -> "rx.IRModule":
        """The program."""
        if self.is_executable:
            raise click.UsageError(f"{self} is an executable: needs a program or an ONNX model")
        if self.is_onnx:
            with self._named(), step(f"importing {self.path.name}"):
                return rx.from_onnx(self.path, shapes=self.shapes)
        try:
            return rx.load_module(self.path)
        except UnicodeDecodeError:
            needed = f"an ONNX model ({ONNX}), a program in script form, or an executable"
            raise click.UsageError(f"{self} is no text: needs {needed} ({EXECUTABLE})") from None

    def executable(self) -> Any:
        """The executable in the file."""
        with self._named():
            return rx.load(self.path)

    def optimized(self, how: How) -> "Explanation":
        """The optimized program with its explanation; a ``ValueError`` is a usage error."""
        return self.optimized_as(self.module(), how)

    def optimized_as(self, module: "rx.IRModule", how: How) -> "Explanation":
        """Like `optimized`, for the loaded program `module`."""
        try:
            with step("optimizing"):
                explanation = rx.explain(module, **how)
        except RelaxEgraphError:
            raise
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        warn_of_assumed(explanation.assumed)
        return explanation

    @contextmanager
    def _named(self) -> Generator[None]:
        """Prefix errors with the name of the file."""
        try:
            yield
        except (ModelError, ExecutableError) as error:
            message = str(error)
            raise click.ClickException(
                message if str(self) in message else f"{self}: {message}"
            ) from None
