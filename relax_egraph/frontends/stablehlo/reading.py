"""Reads StableHLO: text, bytecode, or the file of either."""

import os
from collections.abc import Iterator
from pathlib import Path

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext as jax_dialects
from jaxlib.mlir.dialects import chlo, mhlo, sdy, stablehlo
from jaxlib.mlir.passmanager import PassManager

from relax_egraph.errors import ModelError

_BYTECODE = b"ML\xefR"
_PORTABLE = b"StableHLO_v"
_LEGALIZE = "builtin.module(func.func(chlo-legalize-to-stablehlo))"


def read(source: "str | bytes | os.PathLike[str]") -> ir.Module:
    """The module in `source`: its text or bytecode, or the path of a file that has them.

    Raises `ModelError` for what is no module of StableHLO.
    """
    content = source if isinstance(source, str | bytes) and not _is_path(source) else None
    if content is None:
        content = _content(Path(os.fsdecode(source)))
    if isinstance(content, bytes) and not content.startswith(_BYTECODE):
        try:
            content = content.decode()
        except UnicodeDecodeError:
            raise ModelError("the bytes are neither MLIR bytecode nor text") from None
    context = _context()
    try:
        module = ir.Module.parse(content, context) if not _is_portable(content) else None
        if module is None or any(o.operation.name.startswith("vhlo.") for o in module.body):
            return stablehlo.deserialize_portable_artifact(context, content)
        return module
    except (ir.MLIRError, ValueError) as error:
        raise ModelError(f"the StableHLO module is malformed: {_first_error(error)}") from None


def _is_path(source: str | bytes) -> bool:
    """Whether `source` is no text or bytecode: it is of one line, and begins as no module does."""
    return (
        isinstance(source, str)
        and "\n" not in source
        and not source.lstrip().startswith(("module", "func.", "//"))
    )


def _is_portable(source: str | bytes) -> bool:
    return isinstance(source, bytes) and _PORTABLE in source[:32]


def decompose(module: ir.Module) -> None:
    """Replace all operations of the dialect chlo in `module` by StableHLO's decompositions."""
    stablehlo.register_stablehlo_passes()
    with module.context:
        try:
            PassManager.parse(_LEGALIZE).run(module.operation)
        except ir.MLIRError as error:
            raise ModelError(f"chlo cannot be decomposed: {_first_error(error)}") from None


def walk(operation: ir.Operation) -> Iterator[ir.Operation]:
    """All operations within `operation`."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from walk(inner.operation)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ModelError(f"no file {path}") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"the StableHLO module cannot be read: {error}") from None


def _context() -> ir.Context:
    context = ir.Context()
    registry = ir.DialectRegistry()
    jax_dialects.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    mhlo.register_mhlo_dialect(context)
    return context


def _first_error(error: Exception) -> str:
    """The first diagnostic, such as ``line 3, column 7: expected ')'``."""
    for line in str(error).splitlines():
        place, mark, message = line.removeprefix("error: ").partition(": ")
        parts = place.rsplit(":", 2)
        if mark and len(parts) == 3 and parts[1].isdigit():
            return f"line {parts[1]}, column {parts[2]}: {message.strip()}"
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
