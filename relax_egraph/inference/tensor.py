"""What a saved function takes and returns, read from the texts that an executable keeps of it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from relax_egraph.errors import RunError
from relax_egraph.ir.syntax import parsed_expression

Extent = int | str
"""A number, or the text of an expression over symbols, such as ``"n"`` or ``"2 * n"``."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or a result: its name, dtype and extents."""

    name: str
    dtype: str
    shape: tuple[Extent, ...]

    def __str__(self) -> str:
        extents = ", ".join(map(str, self.shape)) + "," * (len(self.shape) == 1)
        return f"{self.name}: ({extents}) of {self.dtype}"


def tensor_of(name: str, text: str) -> Tensor:
    """The tensor `name` that `text` describes as script does: ``R.Tensor((n, 4), "float32")``.

    Raises `RunError` if it is none, or if its rank or dtype is not known.
    """
    match _parsed(text):
        case ast.Call(
            func=ast.Attribute(attr="Tensor"),
            args=[ast.Tuple(elts=extents), ast.Constant(value=str(dtype))],
        ):
            return Tensor(name, dtype, tuple(map(_extent, extents)))
        case _:
            needed = "needs a tensor whose rank and dtype are known"
            raise RunError(f"{name} is {text or 'anything'}: {needed}")


def results_of(text: str) -> Iterator[tuple[str, str]]:
    """The names and texts of what a function returns; names are ``output_0`` and so on."""
    match _parsed(text):
        case ast.Call(func=ast.Attribute(attr="Tuple"), args=fields):
            for number, field in enumerate(fields):
                yield f"output_{number}", ast.unparse(field)
        case _:
            yield "output_0", text


def _parsed(text: str) -> ast.expr | None:
    try:
        return parsed_expression(text)
    except SyntaxError:
        return None


def _extent(node: ast.expr) -> Extent:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case _:
            return ast.unparse(node)
