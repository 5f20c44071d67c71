"""Random chains of operators on special values: elementwise ones, norms, softmax and reductions.

`special_chains` is a program of several independent chains, so that they are compiled at once.
Reference, machine code and e-graph agree on them up to rounding (`tests.support.rounding`).  Norms
and variances are of numbers whose squares do not overflow, as they require.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.dtypes import is_float, limits
from relax_egraph.ir.expr import Attr, Expr, Tuple, TupleGetItem, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import TensorStructInfo, TupleStructInfo, tensor
from tests.support.ops import SAMPLERS
from tests.support.ops.case import Draw
from tests.support.special_values import specials

Array = np.ndarray[Any, Any]

SQUARING = (
    *(f"nn.{name}_norm" for name in ("layer", "rms", "instance", "group", "batch")),
    *("variance", "std"),
)
OTHERS = ("nn.softmax", "nn.log_softmax", "sum", "mean", "max", "min", "prod", "cumsum")

UNARY = (
    "exp",
    "negative",
    "abs",
    "sqrt",
    "nn.gelu",
    "nn.silu",
    "nn.relu",
    "tanh",
    "erf",
    "sigmoid",
)
BINARY = ("add", "multiply", "subtract", "divide", "maximum")

OPERATORS = (*(n for n, op in OPS.items() if op.elementwise and n in SAMPLERS), *SQUARING, *OTHERS)

MANY = 12
"""The number of chains in one program."""


@dataclass(frozen=True, slots=True)
class SpecialChains:
    """A module whose ``main`` returns a tuple, each field a chain with a name in `names`."""

    module: IRModule
    inputs: tuple[Array, ...]
    names: tuple[str, ...]


def special_chains(seed: int) -> SpecialChains:
    """The program of `seed`; that many programs have each operator several times."""
    random = Random(seed)
    inputs: list[Array] = []
    drawn: list[tuple[str, list[int], Mapping[str, Attr]]] = []
    for k in range(MANY):
        name = OPERATORS[(seed * MANY + k) % len(OPERATORS)]
        case = SAMPLERS[name](Draw(random))
        share = random.choice((0.1, 0.5, 1.0))
        drawn.append((name, [*range(len(inputs), len(inputs) + len(case.operands))], case.attrs))
        inputs += [_with_specials(random, x, share, name in SQUARING) for x in case.operands]
    params = [Var(f"x{k}", tensor(x.shape, x.dtype.name)) for k, x in enumerate(inputs)]
    bb = BlockBuilder()
    names: list[str] = []
    results: list[Expr] = []
    with bb.function("main", params):
        with bb.dataflow():
            for name, places, attrs in drawn:
                value: Expr = bb.emit(call(name, *(params[k] for k in places), **attrs))
                if isinstance(value.struct_info, TupleStructInfo):
                    value = bb.emit(TupleGetItem(value, 0))
                for _ in range(random.choice((0, 0, 1, 2))):
                    if not _is_of_floats(value):
                        break
                    then = random.choice((*UNARY, *BINARY))
                    value = bb.emit(call(then, *[value] * (1 + (then in BINARY))))
                    name += f", {then}"
                results.append(bb.emit_output(value))
                names.append(name)
        bb.emit_func_output(Tuple(tuple(results)))
    return SpecialChains(bb.get(), tuple(inputs), tuple(names))


def _is_of_floats(value: Expr) -> bool:
    info = value.struct_info
    return isinstance(info, TensorStructInfo) and is_float(str(info.dtype))


def _with_specials(random: Random, x: Array, share: float, squared: bool) -> Array:
    """`x` with special values in place of a `share` of its elements."""
    rng = np.random.default_rng(random.getrandbits(32))
    values = specials(x.dtype.name)
    if squared and is_float(x.dtype.name):
        most = float(limits(x.dtype.name).max) ** 0.5 / 16
        values = values[~(np.abs(values) > most) | np.isinf(values)]
    return np.where(rng.random(x.shape) < share, rng.choice(values, x.shape), x).astype(x.dtype)
