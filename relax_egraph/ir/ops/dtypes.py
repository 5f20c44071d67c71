"""Attributes that name dtypes."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.dtypes import DTYPES, is_integer
from relax_egraph.ir.struct_info import TensorStructInfo

INTEGERS = tuple(d for d in DTYPES if is_integer(d))
"""The dtypes of indices."""


def known_dtype(name: str, x: TensorStructInfo, dtype: str) -> str:
    """`dtype`; raises `IllTyped` unless it is the name of a dtype."""
    return _one_of(name, x, dtype, DTYPES)


def index_dtype(name: str, x: TensorStructInfo, dtype: str) -> str:
    """`dtype`; raises `IllTyped` unless it is a dtype of indices."""
    return _one_of(name, x, dtype, INTEGERS)


def _one_of(name: str, x: TensorStructInfo, dtype: str, known: tuple[str, ...]) -> str:
    if dtype not in known:
        raise IllTyped(f'R.{name} of {x}: dtype is "{dtype}", needs one of {", ".join(known)}')
    return dtype
