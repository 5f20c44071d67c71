"""All elementwise operators on all combinations of special values, as a program for each dtype."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from random import Random
from typing import Any

import numpy as np

from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.dtypes import DTYPES, is_float, limits
from relax_egraph.ir.expr import Attrs, Expr, Tuple, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import tensor
from tests.support.ops import SAMPLERS
from tests.support.ops.case import Draw

Array = np.ndarray[Any, Any]


def specials(dtype: str) -> Array:
    """Zeros, the limits of `dtype`, subnormal numbers, infinities, NaN, and everyday numbers."""
    if dtype == "bool":
        return np.array([False, True])
    if not is_float(dtype):
        info = np.iinfo(dtype)
        some = {0, 1, 2, 7, info.max, info.max - 1, info.max // 2, info.min, info.min + 1}
        return np.array(sorted(some | ({-1, -7} if info.min else set())), dtype)
    info = limits(dtype)
    tiny, least = float(info.tiny), float(info.smallest_subnormal)
    sizes = (0.0, least, tiny / 2, tiny, 0.25, 1.0, 1.5, 3.0, 88.0, 600.0, float(info.max), np.inf)
    return np.array([*sizes, *(-s for s in sizes), np.nan], dtype)


@dataclass(frozen=True, slots=True)
class SpecialProgram:
    """``main`` returns a tuple with a field for each operator in `names`, on `arguments`."""

    module: IRModule
    inputs: tuple[Array, ...]
    names: tuple[str, ...]
    arguments: tuple[tuple[int, ...], ...]


@cache
def _cases(name: str) -> tuple[tuple[tuple[str, ...], tuple[tuple[str, Any], ...]], ...]:
    """The dtypes of operands, and attributes, in the samples of an operator."""
    random = Random(name)
    cases = (SAMPLERS[name](Draw(random)) for _ in range(60))
    return tuple(
        (tuple(x.dtype.name for x in case.operands), tuple(case.attrs.items())) for case in cases
    )


def _calls(dtype: str) -> Iterator[tuple[str, tuple[str, ...], Attrs]]:
    """Each elementwise operator on `dtype`, with the dtypes of its operands."""
    for name in (n for n, op in OPS.items() if op.elementwise and n in SAMPLERS):
        if name == "astype":
            yield from ((name, (dtype,), {"dtype": other}) for other in DTYPES)
            continue
        fitting = [c for c in _cases(name) if dtype in c[0]]
        for dtypes, attrs in fitting[:1]:
            yield name, dtypes, dict(attrs)


def program_of(dtype: str) -> SpecialProgram:
    """All elementwise operators that take `dtype`, on all combinations of special values."""
    params: dict[tuple[str, ...], list[int]] = {}
    variables: list[Var] = []
    inputs: list[Array] = []
    calls = list(_calls(dtype))
    for dtypes in dict.fromkeys(dtypes for _, dtypes, _ in calls):
        grid = np.array(list(product(*(range(len(specials(d))) for d in dtypes))))
        params[dtypes] = []
        for d, places in zip(dtypes, grid.T, strict=True):
            params[dtypes].append(len(inputs))
            variables.append(Var(f"x{len(inputs)}", tensor((len(places),), d)))
            inputs.append(specials(d)[places])
    bb = BlockBuilder()
    with bb.function("main", variables):
        with bb.dataflow():
            results: list[Expr] = []
            for name, dtypes, attrs in calls:
                operands = (variables[k] for k in params[dtypes])
                results.append(bb.emit_output(call(name, *operands, **attrs)))
        bb.emit_func_output(Tuple(tuple(results)))
    names = tuple(f"{n} {dict(attrs)}" if attrs else n for n, _, attrs in calls)
    arguments = tuple(tuple(params[dtypes]) for _, dtypes, _ in calls)
    return SpecialProgram(bb.get(), tuple(inputs), names, arguments)
