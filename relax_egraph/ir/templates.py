"""Templates of error messages, with dimensions for sizes that only the run knows.

    R.add of R.Tensor(({b}, {s}, 8), "float32"), R.Tensor((1, {min(64, s)}, 8), "float32"): …

Dimensions are in braces; numbers replace them when the check fails.
"""

import re
from collections.abc import Callable, Mapping

from relax_egraph.ir import dims
from relax_egraph.ir.braces import braced
from relax_egraph.ir.dims import Dim

_FIELD = re.compile(r"\{([^{}]*)\}")


def extents_of(refusal: str) -> tuple[Dim, ...]:
    """The dimensions in `refusal`, in order; raises ``ValueError`` for an invalid one."""
    return tuple(map(_parsed, _FIELD.findall(refusal)))


def without_extents(refusal: str) -> str:
    """`refusal` with empty braces in place of its dimensions."""
    return _FIELD.sub("{}", refusal)


def replace_extents(refusal: str, text: Callable[[Dim], str]) -> str:
    """`refusal` with the `text` of each dimension in place of its braces."""
    return _FIELD.sub(lambda field: text(_parsed(field[1])), refusal)


def fill(refusal: str, values: Mapping[str, int]) -> str:
    """`refusal` with numbers for its dimensions, at `values` of the symbols."""
    return replace_extents(refusal, lambda dim: str(dims.evaluate(dim, values)))


def map_extents(refusal: str, change: Callable[[Dim], Dim]) -> str:
    """`refusal` with changed dimensions, for instance after a renaming of symbols."""

    def text(dim: Dim) -> str:
        with braced():
            return dims.text(change(dim))

    return replace_extents(refusal, text)


def _parsed(written: str) -> Dim:
    try:
        return dims.parse(written)
    except SyntaxError:
        raise ValueError(f"`{written}` is no dimension") from None
