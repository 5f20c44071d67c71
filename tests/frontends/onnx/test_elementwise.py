"""Elementwise operators of ONNX: numbers at the edges, older opsets, bounds of run time."""

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

import relax_egraph as rx
from relax_egraph.errors import ModelError
from relax_egraph.ir.dtypes import INTEGERS
from tests.support.onnx_models import Array, model, node, value

NAN, INF = np.nan, np.inf


def one_node(op: str, *operands: Array | None, opset: int = 26, **attrs: Any) -> ModelProto:
    """A model of one node, whose operands are inputs of symbolic extents; ``None`` is left out."""
    given = {f"x{k}": o for k, o in enumerate(operands) if o is not None}
    inputs = [
        value(name, [e if e == 1 else f"{name}_{k}" for k, e in enumerate(o.shape)], o.dtype.name)
        for name, o in given.items()
    ]
    names = " ".join("_" if o is None else f"x{k}" for k, o in enumerate(operands))
    return model([node(op, names, "y", **attrs)], inputs, [value("y", [])], opset=opset)


def run(op: str, *operands: Array | None, **how: Any) -> Array:
    """What machine code gives."""
    machine = rx.VirtualMachine(rx.build(rx.optimize(rx.from_onnx(one_node(op, *operands, **how)))))
    return machine["main"](*(o for o in operands if o is not None))


def reference(op: str, *operands: Array, **how: Any) -> Array:
    """What ONNX's own evaluator gives."""
    evaluator = ReferenceEvaluator(one_node(op, *operands, **how))
    with np.errstate(all="ignore"):
        results = evaluator.run(None, {f"x{k}": o for k, o in enumerate(operands)})
    assert isinstance(results, list)
    return results[0]


def f32(*numbers: Any) -> Array:
    return np.array(numbers, np.float32)


# --- integers ---------------------------------------------------------------------------


def pairs(dtype: str) -> tuple[Array, Array]:
    """Numbers at the ends of `dtype` and around 0, as a column and a row."""
    ends = np.iinfo(dtype)
    signed = [-7, -2, -1] if ends.min else []
    numbers = np.array([ends.min, ends.min + 1, *signed, 1, 2, 7, ends.max - 1, ends.max], dtype)
    return numbers[:, None], numbers[numbers != 0][None]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_quotients_of_integers_are_rounded_towards_0(dtype: str) -> None:
    x, y = pairs(dtype)

    quotient, whole, rest = run("Div", x, y), run("Mod", x, y), run("Mod", x, y, fmod=1)

    divided = [[abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for b in y[0].tolist()]
               for a in x[:, 0].tolist()]  # fmt: skip
    wide = np.array(divided, object) & ((1 << 8 * x.itemsize) - 1)
    unsigned = np.dtype(f"uint{8 * x.itemsize}")
    np.testing.assert_array_equal(quotient, wide.astype(unsigned).view(dtype), strict=True)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(whole, np.mod(x, y), strict=True)
        np.testing.assert_array_equal(rest, np.fmod(x, y), strict=True)


def test_a_quotient_by_0_does_not_trap() -> None:
    x = np.array([5, -5, 0], np.int32)

    assert run("Div", x, np.zeros(1, np.int32)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("base", ["int32", "int64", "uint8"])
@pytest.mark.parametrize("exponent", ["int64", "uint32"])
def test_powers_of_integers_are_exact_and_wrap(base: str, exponent: str) -> None:
    x = np.array([3, 0, 0, 1, 2, 2, 10, 7, 5, 7, 251, 6], base)
    y = np.array([35, 0, 3, 200, 63, 64, 18, 1, 2, 127, 101, 99], exponent)

    np.testing.assert_array_equal(run("Pow", x, y), np.power(x, y.astype(base)), strict=True)


def test_a_power_below_0_of_an_integer_is_0_but_of_units() -> None:
    x, y = np.array([1, -1, -1, 2, -5]), np.array([-3, -3, -2, -1, -1])

    assert run("Pow", x, y).tolist() == [1, -1, 1, 0, 0]


def test_a_power_in_floats_of_an_integer_is_truncated() -> None:
    x = np.array([5, 3, 2, 1000], np.int32)

    assert run("Pow", x, f32(3, 5, 0.5, 2)).tolist() == [125, 243, 1, 1_000_000]


def test_a_constant_power_of_an_integer_is_a_product() -> None:
    cubed = model(
        [node("Pow", "x three", "y")],
        [value("x", ["n"], "int64")],
        [value("y", ["n"], "int64")],
        {"three": np.array(3)},
    )

    imported = rx.from_onnx(cubed)

    assert [line.strip() for line in imported.script().splitlines()[6:8]] == [
        'y: R.Tensor((n,), "int64") = R.multiply(x, x)',
        'y1: R.Tensor((n,), "int64") = R.multiply(x, y)',
    ]


@pytest.mark.parametrize(
    ("direction", "expected"),
    [("LEFT", [-16, 8, 0, 0]), ("RIGHT", [-4, 2, -1, 0])],
)
def test_bits_beyond_the_width_are_gone(direction: str, expected: list[int]) -> None:
    x, by = np.array([-8, 4, -8, 8], np.int8), np.array([1, 1, 8, -1], np.int8)

    assert run("BitShift", x, by, direction=direction, opset=28).tolist() == expected


# --- floats -----------------------------------------------------------------------------


@pytest.mark.parametrize("fmod", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rests_of_floats_are_those_of_numpy(dtype: str, fmod: int) -> None:
    x = np.array([5, -5, 7.5, 0, INF, 5, 5, NAN, -5], dtype)
    y = np.array([3, 3, -2, 3, 2, 0, INF, 2, -INF], dtype)

    result = run("Mod", x, y, fmod=fmod, opset=28)

    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(result, np.fmod(x, y) if fmod else np.mod(x, y), strict=True)


@pytest.mark.parametrize(
    ("positive", "negative", "expected"),
    [(1, 1, [1, 1, 0, 0]), (1, 0, [1, 0, 0, 0]), (0, 1, [0, 1, 0, 0]), (0, 0, [0, 0, 0, 0])],
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_infinities_are_found_by_sign(
    dtype: str, positive: int, negative: int, expected: list[int]
) -> None:
    x = np.array([INF, -INF, NAN, 1], dtype)

    result = run("IsInf", x, detect_positive=positive, detect_negative=negative)

    np.testing.assert_array_equal(result, np.array(expected, bool), strict=True)


ACTIVATIONS: list[tuple[str, dict[str, Any]]] = [
    ("Celu", {"alpha": 2.0}),
    ("Elu", {"alpha": 0.5}),
    ("Gelu", {}),
    ("Gelu", {"approximate": "tanh"}),
    ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
    ("HardSwish", {}),
    ("LeakyRelu", {"alpha": 0.25}),
    ("Mish", {}),
    ("Reciprocal", {}),
    ("Relu", {}),
    ("Selu", {}),
    ("Selu", {"alpha": 2.0, "gamma": 3.0}),
    ("Shrink", {"lambd": 1.0, "bias": 0.5}),
    ("Softplus", {}),
    ("Softsign", {}),
    ("Swish", {}),
    ("Swish", {"alpha": 0.5}),
    ("ThresholdedRelu", {"alpha": 1.5}),
]


@pytest.mark.parametrize(("op", "attrs"), ACTIVATIONS)
def test_activations_are_those_of_the_reference(op: str, attrs: dict[str, Any]) -> None:
    for shape in ((), (0, 3), (2, 1, 5)):
        size = int(np.prod(shape))
        x = np.resize(f32(-1.5, 0.25, 1.5, -20, 30, 2.5, -0.75, 1.0, -1.0, 0.1), size or 1)
        x = x[:size].reshape(shape)

        expected = reference(op, x.reshape(-1), **attrs).reshape(shape)
        np.testing.assert_allclose(run(op, x, **attrs), expected, 1e-5, 1e-6, strict=True)


@pytest.mark.parametrize(("op", "attrs"), ACTIVATIONS)
def test_great_numbers_do_not_become_none(op: str, attrs: dict[str, Any]) -> None:
    result = run(op, f32(200, -200, NAN), **attrs)

    assert np.isfinite(result[:2]).all()
    assert np.isnan(result[2]) or op in ("Shrink", "ThresholdedRelu")


@pytest.mark.parametrize(
    ("op", "attrs", "ours"),
    [
        ("Gelu", {}, "R.nn.gelu(x)"),
        ("Gelu", {"approximate": "tanh"}, "R.nn.gelu_tanh(x)"),
        ("Selu", {}, "R.nn.selu(x)"),
        ("Swish", {}, "R.nn.silu(x)"),
        ("LeakyRelu", {"alpha": 0.5}, "R.nn.leakyrelu(x, alpha=0.5)"),
    ],
)
def test_what_we_have_becomes_that(op: str, attrs: dict[str, Any], ours: str) -> None:
    given = model([node(op, "x", "y", **attrs)], [value("x", [2])], [value("y", [2])], opset=24)

    assert f"= {ours}\n" in rx.from_onnx(given).script()


def test_a_slope_is_one_number_or_of_channels() -> None:
    x = np.linspace(-3, 3, 12, dtype=np.float32).reshape(2, 3, 2)
    channels = f32(0.5, 0.25, 2)

    expected = np.where(x > 0, x, x * channels[:, None])

    np.testing.assert_array_equal(run("PRelu", x, channels[:, None]), expected)
    np.testing.assert_array_equal(run("PRelu", x, channels, opset=6), expected)
    np.testing.assert_array_equal(run("PRelu", x, f32(0.5)), np.where(x > 0, x, x * 0.5))


# --- bounds -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int8", "int64", "uint32", "bfloat16"])
@pytest.mark.parametrize("low", [None, 2])
@pytest.mark.parametrize("high", [None, 5, 1])
def test_bounds_are_known_when_it_runs(dtype: str, low: int | None, high: int | None) -> None:
    x = np.arange(8).astype(dtype)
    bounds = [None if b is None else np.array(b).astype(dtype) for b in (low, high)]

    result = run("Clip", x, *bounds)

    limited = x if bounds[0] is None else np.maximum(x, bounds[0])
    expected = limited if bounds[1] is None else np.minimum(limited, bounds[1])
    np.testing.assert_array_equal(result, expected, strict=True)


@pytest.mark.parametrize(
    ("bounds", "ours"),
    [
        ({"low": f32(0)[0], "high": f32(6)[0]}, "R.clip(x, min=0.0, max=6.0)"),
        ({"low": f32(0), "high": f32(6)}, "R.clip(x, min=0.0, max=6.0)"),
        ({"high": f32(6)[0]}, 'R.clip(x, min=float("-inf"), max=6.0)'),
        ({"low": f32(NAN)[0]}, 'R.maximum(x, R.const(float("nan"), "float32"))'),
    ],
)
def test_known_bounds_are_attributes(bounds: dict[str, Any], ours: str) -> None:
    names = " ".join(n if n in bounds else "_" for n in ("low", "high"))
    weights = {name: np.asarray(bound) for name, bound in bounds.items()}
    given = model([node("Clip", f"x {names}", "y")], [value("x", [2])], [value("y", [2])], weights)

    assert f"= {ours}\n" in rx.from_onnx(given).script()


def test_bounds_that_no_float_holds_are_exact() -> None:
    most = 2**62 + 1
    given = model(
        [node("Clip", "x _ most", "y")],
        [value("x", ["n"], "int64")],
        [value("y", ["n"], "int64")],
        {"most": np.array(most)},
    )
    main = rx.VirtualMachine(rx.build(rx.optimize(rx.from_onnx(given))))["main"]

    assert main(np.array([most - 1, most, most + 1])).tolist() == [most - 1, most, most]


def test_bounds_of_older_opsets_are_attributes() -> None:
    x = f32(-INF, -3, 0.5, 3, INF, NAN)

    np.testing.assert_array_equal(
        run("Clip", x, opset=9, min=-1.0, max=2.0), f32(-1, -1, 0.5, 2, 2, NAN)
    )
    np.testing.assert_array_equal(run("Clip", x, opset=9, min=0.0), f32(0, 0, 0.5, 3, INF, NAN))
    np.testing.assert_array_equal(run("Clip", x, opset=9), x)


# --- several operands, dtypes, refusals -------------------------------------------------


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("Max", [[4, NAN, 4], [4, NAN, 4]]),
        ("Min", [[1, NAN, -3], [-8, NAN, -8]]),
        ("Sum", [[7, NAN, 3], [-3, NAN, -7]]),
        ("Mean", [[7 / 3, NAN, 1], [-1, NAN, -7 / 3]]),
    ],
)
def test_as_many_operands_as_there_are(op: str, expected: Any) -> None:
    x, y, z = f32(1, NAN, -3), f32([2], [-8]), np.asarray(f32(4)[0])

    np.testing.assert_allclose(run(op, x, y, z), f32(*expected), 1e-6, strict=True)
    np.testing.assert_array_equal(run(op, x), x)


def test_extremes_of_unsigned_integers_have_no_sign() -> None:
    x, y = np.array([0, 2**64 - 1, 5], np.uint64), np.array([2**63, 1, 5], np.uint64)

    assert run("Max", x, y).tolist() == [2**63, 2**64 - 1, 5]
    assert run("Min", x, y).tolist() == [0, 1, 5]


@pytest.mark.parametrize("like", ["bool", "uint16", "int64", "float16", "float64"])
def test_a_dtype_is_taken_from_another_tensor(like: str) -> None:
    x = f32(0, 1.75, 200)

    np.testing.assert_array_equal(
        run("CastLike", x, np.zeros(2, like)), x.astype(like), strict=True
    )


def test_operands_of_old_opsets_begin_at_an_axis() -> None:
    x, y = np.ones((2, 3, 4), np.float32), f32(1, 2, 3)

    result = run("Add", x, y, opset=6, broadcast=1, axis=1)

    np.testing.assert_array_equal(result, x + y[:, None])


@pytest.mark.parametrize(
    ("op", "attrs", "reason"),
    [
        ("BitShift", {"direction": "UP"}, "its direction is 'UP', needs 'LEFT' or 'RIGHT'"),
        ("Gelu", {"approximate": "sin"}, "its approximation is 'sin', needs one of none, tanh"),
    ],
)
def test_what_is_not_defined_is_refused(op: str, attrs: dict[str, Any], reason: str) -> None:
    x = np.ones(2, np.uint8) if op == "BitShift" else np.ones(2, np.float32)
    operands = (x, x) if op == "BitShift" else (x,)

    with pytest.raises(ModelError) as refused:
        rx.from_onnx(one_node(op, *operands, **attrs))

    assert str(refused.value).splitlines()[1].strip() == f"y ({op}, opset 26): {reason}"


# --- shape arithmetic -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "a", "b", "attrs", "expected"),
    [
        ("Sub", np.uint8(3), np.uint8(5), {}, np.uint8(254)),
        ("Mul", np.int32(2**30), np.int32(4), {}, np.int32(0)),
        ("Mod", np.int64(-7), np.int64(3), {"fmod": 0}, np.int64(2)),
        ("Mod", np.int64(-7), np.int64(3), {"fmod": 1}, np.int64(-1)),
        ("Div", np.int64(-7), np.int64(2), {}, np.int64(-3)),
    ],
)
def test_constants_are_computed_as_tensors_are(
    op: str, a: Any, b: Any, attrs: dict[str, Any], expected: Any
) -> None:
    dtype = expected.dtype.name
    given = model(
        [node(op, "a b", "c", **attrs), node("Add", "x c", "y")],
        [value("x", ["n"], dtype)],
        [value("y", ["n"], dtype)],
        {"a": np.asarray(a), "b": np.asarray(b)},
    )
    main = rx.VirtualMachine(rx.build(rx.optimize(rx.from_onnx(given))))["main"]

    np.testing.assert_array_equal(main(np.zeros(1, dtype)), np.array([expected]), strict=True)
