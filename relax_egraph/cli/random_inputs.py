"""Random arguments for a function, from the types of its parameters."""

import ast
import math
import sys
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.syntax import parsed_expression

Sizes = Mapping[str, int]
"""The sizes of dimension symbols."""


def random_input(name: str, info: str, sizes: Sizes) -> Any:
    """A random value of the type `info`, in script syntax: ``R.Tensor((n, 4), "float32")``.

    Floats are normally distributed; integers are 0 or 1, so that they are valid indices.  The value
    depends only on `name` and the shape.  Raises `RunError` if `info` is not specific enough.
    """
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    try:
        return _value(parsed_expression(info), sizes, rng)
    except KeyError as missing:
        name = missing.args[0]
        raise RunError(f"the size of {name} is unknown: use --size {name}=128") from None
    except MemoryError:
        raise RunError(f"parameter {name} of {info} is too large at these sizes") from None
    except (ValueError, TypeError, SyntaxError, RecursionError):
        expected = info or "any object"
        raise RunError(f"parameter {name} takes {expected}: use --input") from None


def _value(info: ast.expr, sizes: Sizes, rng: np.random.Generator) -> Any:
    match info:
        case ast.Call(
            func=ast.Attribute(attr="Tensor"),
            args=[ast.Tuple(elts=shape), ast.Constant(value=str(dtype))],
        ):
            return _array(_shape(shape, sizes), np.dtype(dtype), rng)
        case ast.Call(func=ast.Attribute(attr="Shape"), args=[ast.Tuple(elts=shape)]):
            return _shape(shape, sizes)
        case ast.Call(func=ast.Attribute(attr="Prim"), keywords=[ast.keyword(value=dim)]):
            return _shape([dim], sizes)[0]
        case ast.Call(func=ast.Attribute(attr="Tuple"), args=fields):
            return tuple(_value(f, sizes, rng) for f in fields)
        case _:
            raise ValueError(ast.unparse(info))


def _array(shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Any:
    if math.prod(shape) * dtype.itemsize > sys.maxsize:
        raise MemoryError
    if dtype.kind in "biu":
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.standard_normal(shape, np.float32).astype(dtype)


def _shape(written: Sequence[ast.expr], sizes: Sizes) -> tuple[int, ...]:
    return tuple(dims.evaluate(dims.from_ast(dim), sizes) for dim in written)
