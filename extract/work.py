"""How much arithmetic each operator is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from relax_egraph.ir.op import OPS


@dataclass(frozen=True, slots=True)
class Work:
    """An operator's work: `flops` for each element of its result, or of its first operand.

    Or, for a matrix product, for each product of elements that it adds up.
    """

    flops: float
    each: Literal["result", "operand", "product"] = "result"


WORK: Mapping[str, Work] = {
    **dict.fromkeys(
        ("permute_dims", "reshape", "flatten", "broadcast_to", "expand_dims", "squeeze"), Work(0)
    ),
    "shape_of": Work(0),
    **dict.fromkeys(
        ("abs", "negative", "add", "subtract", "multiply", "maximum", "minimum"), Work(1)
    ),
    **dict.fromkeys(("greater", "less", "equal", "where", "astype", "nn.relu"), Work(1)),
    "ewise_fma": Work(1),
    "divide": Work(8),
    "sqrt": Work(8),
    "rsqrt": Work(10),
    "exp": Work(20),
    "log": Work(24),
    "sigmoid": Work(28),
    "tanh": Work(30),
    "erf": Work(30),
    "power": Work(60),
    "nn.gelu": Work(34),
    "nn.gelu_tanh": Work(36),
    "nn.silu": Work(29),
    "nn.softmax": Work(30),
    **dict.fromkeys(("sum", "max", "min", "mean"), Work(1, "operand")),
    "unique": Work(100, "operand"),
    "matmul": Work(2, "product"),
}
"""The work of every operator but the intrinsics, by name.  An fma is one instruction."""

MOVEMENT = frozenset(name for name, work in WORK.items() if work.flops == 0 and OPS[name].fusible)
"""Operators that compute nothing: inside a kernel they are index maps."""
