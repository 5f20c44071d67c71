"""The loops of each operator read back: as operators that compute the same, or not at all."""

from collections.abc import Mapping

import pytest

from relax_egraph.ir import dims
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Attr, Function, Var
from relax_egraph.ir.matching import Value
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import tensor
from relax_egraph.lower.legalize import LEGALIZE, VIEWS, activation, binary, unary
from relax_egraph.lower.legalize_ops import legalize_ops
from relax_egraph.raising.function import read
from relax_egraph.tir.stmt import PrimFunc
from tests.ir.ops.test_operators import (
    STATIC,
    arrays_of,
    assert_near,
    counts,
    draws,
    module_of,
    symbolic,
)
from tests.support.raised import Operators, names_of

FEW = 4

SCHEDULED = frozenset(
    {
        *("cumsum", "cumprod", "sort", "argsort", "topk", "multinomial_from_uniform"),
        *("scatter_elements", "scatter_nd", "index_put", "nn.rnn", "nn.lstm", "nn.gru"),
        *("reverse_sequence", "nn.softplus"),
    }
)
"""Operators whose loops are no operators: in order, in place, or of other scalar functions."""


def first(x: Value, *_: Value) -> Value:
    return x


@pytest.mark.parametrize("count", counts(FEW))
@pytest.mark.parametrize("name", [name for name in LEGALIZE if name not in VIEWS])
def test_what_is_read_computes_what_the_operator_does(name: str, count: int) -> None:
    for k, (case, random) in enumerate(draws(name, count)):
        known = (symbolic(case, random), STATIC)[k % 2]
        module = legalize_ops(module_of(name, [(case, known)]))
        operators = Operators()
        packed = {"vm.builtin.check_elements": first}

        if all(isinstance(f, PrimFunc) or n == "f0" for n, f in module.functions.items()):
            args = arrays_of(case.operands)
            result = evaluate(module, "f0", *args, packed=packed, prim_func=operators)
            assert_near(result, apply_op(OPS[name], case.operands, case.attrs), case)
        assert not (name in SCHEDULED and operators.read)


n, m, k = map(dims.symbol, "nmk")

SAME: Mapping[str, tuple[tuple[tuple[dims.Dim, ...], ...], Mapping[str, Attr]]] = {
    **dict.fromkeys([*unary.SCALARS, *activation.SCALARS], (((n, m),), {})),
    **dict.fromkeys(binary.SCALARS, (((n, m), (n, m)), {})),
    "ewise_fma": (((n, m), (n, m), (n, m)), {}),
    **dict.fromkeys(("sum", "max", "min", "mean", "prod"), (((n, m),), {"axis": (1,)})),
    "matmul": (((n, k), (k, m)), {}),
    "permute_dims": (((n, m),), {"axes": (1, 0)}),
    "flip": (((n, m),), {"axis": 0}),
    "astype": (((n, m),), {"dtype": "int32"}),
}
"""Operators that read back as themselves: the shapes of operands, and attributes."""

BOOLEANS = frozenset({"logical_not", "logical_and", "logical_or", "logical_xor"})
INTEGERS = frozenset(
    {"bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"}
)
ALIKE = {"ewise_add": "add", "logical_xor": "not_equal"}
"""Operators with the loops of another."""


def dtype_of(name: str) -> str:
    if name in BOOLEANS:
        return "bool"
    return "int32" if name in INTEGERS else "float32"


@pytest.mark.parametrize("name", SAME)
def test_these_operators_read_back_as_themselves(name: str) -> None:
    shapes, attrs = SAME[name]
    params = [Var(f"x{i}", tensor(s, dtype_of(name))) for i, s in enumerate(shapes)]
    args = list(params)
    if name == "where":
        params.insert(0, Var("condition", tensor(shapes[0], "bool")))
        args = params
    bb = BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            out = bb.emit_output(call(name, *args, **attrs))
        bb.emit_func_output(out)
    (loops,) = [f for f in legalize_ops(bb.get()).functions.values() if isinstance(f, PrimFunc)]

    function = read(loops)

    assert isinstance(function, Function)
    assert [*names_of(function)] == [ALIKE.get(name, name)]
