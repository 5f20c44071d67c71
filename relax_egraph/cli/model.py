"""The argument MODEL: loading, optimizing and building it."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

import relax_egraph as rx
from relax_egraph.base.progress import step
from relax_egraph.errors import ExecutableError, ModelError, RelaxEgraphError

if TYPE_CHECKING:
    from relax_egraph.frontends.probed import Probed
    from relax_egraph.reasons.explain import Reasons

ONNX, TORCH, EXECUTABLE = ".onnx", ".pt2", ".rxe"
STABLEHLO = (".mlir", ".mlirbc")

FORMATS = f"an ONNX model ({ONNX}), a program of torch ({TORCH}) or StableHLO ({STABLEHLO[0]})"
"""The models of other systems, in words."""

How: TypeAlias = Mapping[str, Any]
"""Keywords of `relax_egraph.optimize`."""


def rules_apart(how: How) -> tuple[Sequence[Any], How]:
    """The rules of users in `how`, and the other keywords."""
    return how.get("rules", ()), {name: value for name, value in how.items() if name != "rules"}


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
            raise click.UsageError(f"{self} is an executable: needs a program, or {FORMATS}")
        if (importer := self._importer()) is not None:
            with self._named(), step(f"importing {self.path.name}"):
                return importer()
        try:
            return rx.load_module(self.path)
        except UnicodeDecodeError:
            needed = f"{FORMATS}, a program in script form, or an executable ({EXECUTABLE})"
            raise click.UsageError(f"{self} is no text: needs {needed}") from None

    def probed(self) -> "Probed":
        """The program of torch, with all its values as results."""
        from relax_egraph.frontends import probed_torch

        with self._named(), step(f"importing {self.path.name}"):
            return probed_torch(self.path)

    def _importer(self) -> "Callable[[], rx.IRModule] | None":
        """What imports the model of another system, by its suffix."""
        match self.path.suffix:
            case suffix if suffix == ONNX:
                return lambda: rx.from_onnx(self.path, shapes=self.shapes)
            case suffix if suffix == TORCH:
                return lambda: rx.from_torch(self.path)
            case suffix if suffix in STABLEHLO:
                return lambda: rx.from_stablehlo(self.path)
            case _:
                return None

    def executable(self) -> Any:
        """The executable in the file."""
        with self._named():
            return rx.load(self.path)

    def optimized(self, how: How) -> "Reasons":
        """The optimized program with its explanation; a ``ValueError`` is a usage error."""
        return self.optimized_as(self.module(), how)

    def optimized_as(self, module: "rx.IRModule", how: How) -> "Reasons":
        """Like `optimized`, for the loaded program `module`."""
        try:
            with step("optimizing"):
                reasons = rx.explain(module, **how)
        except RelaxEgraphError:
            raise
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        warn_of_assumed(reasons.assumed)
        return reasons

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
