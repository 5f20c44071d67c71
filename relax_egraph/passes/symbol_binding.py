"""Binds the symbols of a loop function to dimensions of the caller."""

from collections.abc import Sequence

import sympy

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.struct_info import TensorStructInfo
from relax_egraph.tir.stmt import PrimFunc


def bind_symbols(
    what: str,
    function: PrimFunc,
    arrays: Sequence[TensorStructInfo],
    tir_vars: Sequence[Dim] = (),
) -> dict[str, Dim]:
    """A dimension for each of ``function.symbols``, from the arguments of a call.

    `arrays` are the struct info of operands, then of results; `tir_vars` go to
    ``function.scalars``.  An extent that is a symbol alone binds it; one of a single unknown
    symbol, linear in it, is solved: ``n * 4`` against ``m * 8`` gives ``n = m * 2``.  Contradictory
    extents are not detected.  Raises `IllTyped`, with a message that begins with `what`, for a
    symbol that nothing binds.
    """
    if len(tir_vars) != len(function.scalars):
        raise IllTyped(
            f"{what}: {len(tir_vars)} tir_vars, needs {len(function.scalars)} "
            f"({', '.join(function.scalars)})"
        )
    values: dict[str, Dim] = dict(zip(function.scalars, tir_vars, strict=True))
    extents = [
        pair
        for buffer, info in zip(function.params, arrays, strict=True)
        if info.dims is not None and len(info.dims) == len(buffer.shape)
        for pair in zip(buffer.shape, info.dims, strict=True)
    ]
    extents.sort(key=lambda pair: not isinstance(pair[0], sympy.Symbol))
    count = -1
    while count != len(values):
        count = len(values)
        for formal, actual in extents:
            solve(formal, actual, values)
    for name in function.symbols:
        if name not in values:
            raise IllTyped(f"{what}: no operand has a known extent that binds its symbol {name}")
    return values


def solve(formal: Dim, actual: Dim, values: dict[str, Dim]) -> None:
    """Solve ``formal == actual`` for the one unknown symbol of `formal`; add it to `values`."""
    unknown = dims.symbols(formal) - values.keys()
    if isinstance(formal, int) or len(unknown) != 1:
        return
    (name,) = unknown
    if isinstance(formal, sympy.Symbol):
        values[name] = actual
        return
    unknown_symbol = sympy.Dummy(integer=True, nonnegative=True)
    renamed = sympy.sympify(dims.substitute(formal.subs(dims.symbol(name), unknown_symbol), values))
    slope = sympy.diff(renamed, unknown_symbol)
    if slope == 0 or not renamed.is_polynomial(unknown_symbol) or slope.has(unknown_symbol):
        return
    value = dims.canonical(sympy.cancel((actual - renamed.subs(unknown_symbol, 0)) / slope))
    if _is_dim(value):
        values[name] = value


def _is_dim(value: Dim) -> bool:
    try:
        return dims.parse(dims.text(value)) == value
    except (ValueError, SyntaxError):
        return False
