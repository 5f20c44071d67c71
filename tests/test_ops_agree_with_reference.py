"""Every operator's struct-info rule says what its reference computes, on random instances."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.ir import dims
from relax_egraph.ir.agreement import relation, substituted
from relax_egraph.ir.dims import Dim, symbol
from relax_egraph.ir.evaluate import REFERENCE, apply_op
from relax_egraph.ir.expr import Attr, Call, Expr, ShapeExpr, Var
from relax_egraph.ir.op import OPS, infer
from relax_egraph.ir.struct_info import (
    DTYPES,
    Shape,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    tensor,
)

FLOATS = ("float32", "float64")
NUMBERS = tuple(d for d in DTYPES if d != "bool")

n, m, z = symbol("n"), symbol("m"), symbol("z")
EXTENTS: list[Dim] = [1, 2, 3, n, m, z, dims.add(n, 1), dims.mul(n, 2)]
VALUES = st.fixed_dictionaries({"n": st.integers(1, 3), "m": st.integers(0, 3), "z": st.just(0)})

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]


@dataclass
class Instance:
    """An application of an operator: its operands' struct info, and its attributes."""

    operands: Sequence[TensorStructInfo | ShapeStructInfo]
    attrs: dict[str, Attr] = field(default_factory=dict[str, Attr])


def a_shape(draw: Draw, least: int = 0, most: int = 3) -> Shape:
    return tuple(draw(st.lists(st.sampled_from(EXTENTS), min_size=least, max_size=most)))


def a_part(draw: Draw, whole: Shape) -> Shape:
    """A shape that broadcasts to `whole`."""
    kept = whole[draw(st.integers(0, len(whole))) :]
    return tuple(1 if draw(st.booleans()) else d for d in kept)


def some_axes(draw: Draw, rank: int) -> tuple[int, ...]:
    """Distinct axes, some of them counted from the end."""
    chosen = draw(st.lists(st.sampled_from(range(rank)), unique=True)) if rank else []
    return tuple(a - rank if draw(st.booleans()) else a for a in chosen)


def elementwise(count: int, dtypes: Sequence[str]) -> Callable[[Draw], Instance]:
    def instance(draw: Draw) -> Instance:
        whole, dtype = a_shape(draw), draw(st.sampled_from(dtypes))
        shapes = [whole, *(a_part(draw, whole) for _ in range(count - 1))]
        return Instance([tensor(s, dtype) for s in draw(st.permutations(shapes))])

    return instance


def where(draw: Draw) -> Instance:
    whole, dtype = a_shape(draw), draw(st.sampled_from(DTYPES))
    condition, x, y = draw(st.permutations([whole, a_part(draw, whole), a_part(draw, whole)]))
    return Instance([tensor(condition, "bool"), tensor(x, dtype), tensor(y, dtype)])


def astype(draw: Draw) -> Instance:
    instance = elementwise(1, DTYPES)(draw)
    return Instance(instance.operands, {"dtype": draw(st.sampled_from(DTYPES))})


def reduction(dtypes: Sequence[str]) -> Callable[[Draw], Instance]:
    def instance(draw: Draw) -> Instance:
        shape = a_shape(draw)
        axis = some_axes(draw, len(shape)) if draw(st.booleans()) else None
        attrs: dict[str, Attr] = {"axis": axis, "keepdims": draw(st.booleans())}
        return Instance([tensor(shape, draw(st.sampled_from(dtypes)))], attrs)

    return instance


def softmax(draw: Draw) -> Instance:
    shape = a_shape(draw, least=1)
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    return Instance([tensor(shape, draw(st.sampled_from(FLOATS)))], {"axis": axis})


def matmul(draw: Draw) -> Instance:
    rows, inner, columns = a_shape(draw, 3, 3)
    batch, dtype = a_shape(draw, most=2), draw(st.sampled_from(DTYPES))
    x = draw(st.sampled_from([(inner,), (*batch, rows, inner)]))
    y = draw(st.sampled_from([(inner,), (*a_part(draw, batch), inner, columns)]))
    return Instance([tensor(x, dtype), tensor(y, dtype)])


def permute_dims(draw: Draw) -> Instance:
    shape = a_shape(draw)
    order = draw(st.permutations(range(len(shape))))
    axes = tuple(a - len(shape) if draw(st.booleans()) else a for a in order)
    return Instance(
        [tensor(shape, draw(st.sampled_from(DTYPES)))],
        {"axes": axes if draw(st.booleans()) else None},
    )


def reshape(draw: Draw) -> Instance:
    shape = a_shape(draw)
    cut = draw(st.integers(0, len(shape)))
    merged = (dims.product(shape[:cut]), *shape[cut:])
    target = draw(st.sampled_from([shape, merged, tuple(reversed(merged)), (1, *shape, 1)]))
    dtype = draw(st.sampled_from(DTYPES))
    return Instance([tensor(shape, dtype), ShapeStructInfo(target, len(target))])


def broadcast_to(draw: Draw) -> Instance:
    whole, dtype = a_shape(draw), draw(st.sampled_from(DTYPES))
    return Instance([tensor(a_part(draw, whole), dtype), ShapeStructInfo(whole, len(whole))])


def expand_dims(draw: Draw) -> Instance:
    shape, added = a_shape(draw), draw(st.integers(0, 2))
    rank = len(shape) + added
    places = draw(st.permutations(range(rank)))[:added]
    axis = tuple(a - rank if draw(st.booleans()) else a for a in places)
    return Instance([tensor(shape, draw(st.sampled_from(DTYPES)))], {"axis": axis})


def squeeze(draw: Draw) -> Instance:
    shape = a_shape(draw)
    axis = some_axes(draw, len(shape))
    places = {a % len(shape) for a in axis}
    ones = tuple(1 if k in places else d for k, d in enumerate(shape))
    return Instance([tensor(ones, draw(st.sampled_from(DTYPES)))], {"axis": axis})


def of_any(draw: Draw) -> Instance:
    return Instance([tensor(a_shape(draw), draw(st.sampled_from(DTYPES)))])


INSTANCES: Mapping[str, Callable[[Draw], Instance]] = {
    **dict.fromkeys(["abs", "nn.relu"], elementwise(1, DTYPES)),
    "negative": elementwise(1, NUMBERS),
    **dict.fromkeys(["exp", "log", "sqrt", "rsqrt", "tanh", "erf"], elementwise(1, FLOATS)),
    **dict.fromkeys(["sigmoid", "nn.gelu", "nn.gelu_tanh", "nn.silu"], elementwise(1, FLOATS)),
    **dict.fromkeys(["add", "multiply", "maximum", "minimum"], elementwise(2, DTYPES)),
    **dict.fromkeys(["greater", "less", "equal"], elementwise(2, DTYPES)),
    "subtract": elementwise(2, NUMBERS),
    **dict.fromkeys(["divide", "power"], elementwise(2, FLOATS)),
    "ewise_fma": elementwise(3, DTYPES),
    "where": where,
    "astype": astype,
    **dict.fromkeys(["sum", "max", "min"], reduction(DTYPES)),
    "mean": reduction(FLOATS),
    "nn.softmax": softmax,
    "matmul": matmul,
    "permute_dims": permute_dims,
    "reshape": reshape,
    **dict.fromkeys(["flatten", "unique", "shape_of"], of_any),
    "broadcast_to": broadcast_to,
    "expand_dims": expand_dims,
    "squeeze": squeeze,
}


def ruled(name: str, operands: Sequence[StructInfo], attrs: Mapping[str, Attr]) -> StructInfo:
    args: list[Expr] = [
        ShapeExpr(o.values)
        if isinstance(o, ShapeStructInfo) and o.values is not None
        else Var("x", o)
        for o in operands
    ]
    return infer(Call(OPS[name], tuple(args), attrs))


def a_value(info: TensorStructInfo | ShapeStructInfo, values: Mapping[str, int]) -> Any:
    known = substituted(info, values)
    if isinstance(known, ShapeStructInfo):
        return known.values
    assert isinstance(known, TensorStructInfo)
    random = np.random.default_rng(7).normal(0, 3, [int(str(d)) for d in known.dims or ()])
    return (
        np.abs(random).astype(known.dtype)
        if known.dtype == "uint8"
        else np.asarray(random).astype(known.dtype)
    )


def info_of(value: Any) -> StructInfo:
    if isinstance(value, tuple):
        return ShapeStructInfo(value, len(value))
    return tensor(value.shape, value.dtype.name)


def weakened(draw: Draw, info: TensorStructInfo | ShapeStructInfo) -> StructInfo:
    """What is still true of the operand, but says less."""
    rank = info.ndim if draw(st.booleans()) else -1
    if isinstance(info, ShapeStructInfo):
        return draw(st.sampled_from([info, ShapeStructInfo(None, rank)]))
    dtype = info.dtype if draw(st.booleans()) else None
    return draw(st.sampled_from([info, tensor(info.dims, dtype), tensor(None, dtype, rank)]))


def test_every_operator_with_a_reference_has_instances_here() -> None:
    assert set(INSTANCES) == set(REFERENCE)


@pytest.mark.parametrize("name", INSTANCES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_the_rule_says_what_the_reference_computes(name: str, data: st.DataObject) -> None:
    instance = INSTANCES[name](data.draw)
    values = data.draw(VALUES)
    operands = [a_value(o, values) for o in instance.operands]

    result = apply_op(OPS[name], operands, instance.attrs)

    static = ruled(name, [info_of(o) for o in operands], instance.attrs)
    assert static == (tensor(None, result.dtype.name, 1) if name == "unique" else info_of(result))
    symbolic = ruled(name, instance.operands, instance.attrs)
    assert relation(substituted(symbolic, values), info_of(result)) == "implied"
    less = ruled(name, [weakened(data.draw, o) for o in instance.operands], instance.attrs)
    assert relation(substituted(less, values), info_of(result)) == "implied"
