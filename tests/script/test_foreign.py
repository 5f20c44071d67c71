"""Operators of TVM that are several operators here compute what they compute there."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, parse
from relax_egraph.errors import ScriptError
from relax_egraph.ir.evaluate import evaluate

MAPS = {
    "lambda i, j: (j, i)": (3, 5),
    "lambda i: (i // 4, i % 4)": (12,),
    "lambda i: (i % 4, i // 4)": (10,),
    "lambda i, j: (i * 4 + j,)": (3, 4),
    "lambda i, j: (j + i * 4,)": (3, 4),
    "lambda i: (i // 8, i % 2, i // 2 % 4)": (16,),
    "lambda n, c, h: (n, c // 4, h, c % 4)": (2, 6, 3),
    "lambda n, C, h, c: (n, C * 4 + c, h, 0)": (2, 2, 3, 4),
    "lambda i, j: (i // 2 * 2 + j, i % 2)": (4, 2),
    "lambda i: (i % 16,)": (14,),
}
"""Maps of indices, and the shape of the tensor."""


def transformed(shape: tuple[int, ...], written: str, padding: float) -> Any:
    module = parse(f"""
@R.function
def main(x: R.Tensor({shape}, "float32")):
    y = R.layout_transform(x, index_map={written}, pad_value={padding})
    return y
""")
    x = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    return x, evaluate(module, "main", x)


@pytest.mark.parametrize(("written", "shape"), MAPS.items())
def test_a_transformed_layout_has_each_element_where_the_map_says(
    written: str, shape: tuple[int, ...]
) -> None:
    index: Callable[..., Any] = eval(written)

    x, y = transformed(shape, written, 7.0)

    places = np.meshgrid(*map(np.arange, shape), indexing="ij")
    expected = np.full(y.shape, 7, np.float32)
    expected[index(*places)] = x
    np.testing.assert_array_equal(y, expected, strict=True)


@pytest.mark.parametrize(
    ("shape", "written", "message"),
    [
        ((17,), "lambda i: (i % 16,)", "is no rearrangement: it repeats or drops elements"),
        ((3, 4), "lambda i, j: (i * 3 + j,)", "is no rearrangement: it repeats or drops elements"),
        ((12,), "lambda i: (i // 4, i % 3)", "splits an axis at [1, 3, 4], needs multiples"),
        ((3, 4), "lambda i: (i,)", "`lambda i: (i,)` is no map of 2 indices"),
        ((3, 4), "lambda i, j: (i * j,)", "`j` is no positive number"),
        ((3, 4), "lambda i, j: (i, j - 1)", "`j - 1` is no part of a map of indices"),
    ],
)
def test_another_map_is_refused(shape: tuple[int, ...], written: str, message: str) -> None:
    with pytest.raises(ScriptError) as raised:
        transformed(shape, written, 0)

    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("dtype", "out"), [("int8", "int32"), ("float32", "float32"), ("float32", "float64")]
)
def test_a_product_has_the_dtype_that_it_asks_for(dtype: str, out: str) -> None:
    module = parse(f"""
@R.function
def main(x: R.Tensor((2, 3), "{dtype}"), y: R.Tensor((3, 4), "{dtype}")):
    z = R.matmul(x, y, out_dtype="{out}")
    return z
""")
    x = np.full((2, 3), 100, dtype)
    y = np.arange(12).reshape(3, 4).astype(dtype)

    z = VirtualMachine(build(module))["main"](x, y)

    np.testing.assert_array_equal(z, x.astype(out) @ y.astype(out), strict=True)


def test_points_of_a_grid_are_along_its_second_axis_in_the_words_of_tvm() -> None:
    ours, theirs = (
        parse(f"""
@R.function
def main(x: R.Tensor((1, 3, 4, 4), "float32"), grid: R.Tensor({shape}, "float32")):
    y = R.image.grid_sample(x, grid, {attrs})
    return y
""")
        for shape, attrs in [
            ((1, 3, 5, 2), 'method="linear"'),
            ((1, 2, 3, 5), 'method="bilinear", layout="NCHW", padding_mode="zeros"'),
        ]
    )
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 3, 4, 4)).astype(np.float32)
    grid = rng.uniform(-1, 1, (1, 3, 5, 2)).astype(np.float32)

    y = evaluate(theirs, "main", x, np.ascontiguousarray(grid.transpose(0, 3, 1, 2)))

    np.testing.assert_array_equal(y, evaluate(ours, "main", x, grid), strict=True)


def test_a_condition_may_be_a_scalar_of_the_host() -> None:
    module = parse("""
@R.function
def main(x: R.Tensor((4,), "float32"), c: R.Prim("bool")):
    if c:
        y = x + x
    else:
        y = x
    return y
""")
    x = np.ones(4, np.float32)
    machine = VirtualMachine(build(module))

    for c in (True, False):
        np.testing.assert_array_equal(evaluate(module, "main", x, c), x * (1 + c))
        np.testing.assert_array_equal(machine["main"](x, c), x * (1 + c))


@pytest.mark.parametrize(
    ("call", "dtype", "offset", "count"),
    [
        ('R.memory.view(x, dtype="int32")', "int32", 0, 16),
        ("R.memory.view(x, R.shape([2, 3]), relative_byte_offset=4 * 4)", "float32", 16, 6),
        ("R.memory.view(x, R.shape([3]))", "float32", 0, 3),
        ('R.memory.view(x, R.shape([8]), R.dtype("float64"))', "float64", 0, 8),
    ],
)
def test_a_view_is_of_the_bytes_of_a_tensor(call: str, dtype: str, offset: int, count: int) -> None:
    module = parse(f"""
@R.function
def main(x: R.Tensor((4, 4), "float32")):
    y = {call}
    return y
""")
    x = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)

    y = VirtualMachine(build(module))["main"](x)

    expected = np.frombuffer(x.tobytes(), dtype, count, offset)
    np.testing.assert_array_equal(y.ravel(), expected, strict=True)


def test_a_view_of_more_bytes_than_there_are_is_refused() -> None:
    with pytest.raises(ScriptError, match="from byte 16: it has too few bytes"):
        parse("""
@R.function
def main(x: R.Tensor((4, 4), "float32")):
    y = R.memory.view(x, relative_byte_offset=16)
    return y
""")


def test_a_float_of_the_host_is_an_operand_of_operators_and_loop_functions() -> None:
    module = parse("""
@I.ir_module
class Module:
    @T.prim_func
    def scale(x: T.Buffer((4,), "float32"), by: T.float32, out: T.Buffer((4,), "float32")):
        for i in T.grid(*x.shape):
            with T.block("scale"):
                vi = T.axis.spatial(x.shape[0], i)
                out[vi] = x[vi] * by + vi

    @R.function
    def main(x: R.Tensor((4,), "float32"), by: R.Prim("float32")):
        y = R.call_tir(Module.scale, (x, by), R.Tensor((4,), "float32"))
        z = R.add(y, by)
        return z
""")
    x = np.arange(4, dtype=np.float32)

    z = VirtualMachine(build(module))["main"](x, 0.5)

    np.testing.assert_array_equal(z, x * np.float32(0.5) + x + np.float32(0.5), strict=True)


@pytest.mark.parametrize(
    ("data", "kernel", "out"),
    [("NCHW4c", "OIHW4o", "NCHW4c"), ("NHWC4c", "OHWI4o", "NCHW"), ("N2nHWC4c", "OHWI2i4o", "")],
)
def test_a_convolution_of_blocked_layouts_is_that_of_plain_ones(
    data: str, kernel: str, out: str
) -> None:
    x = np.random.default_rng(0).standard_normal((2, 8, 6, 6)).astype(np.float32)
    w = np.random.default_rng(1).standard_normal((4, 8, 3, 3)).astype(np.float32)
    xs, ws = blocked(x, "NCHW", data), blocked(w, "OIHW", kernel)
    module = parse(f"""
@R.function
def main(x: R.Tensor({xs.shape}, "float32"), w: R.Tensor({ws.shape}, "float32")):
    y = R.nn.conv2d(x, w, data_layout="{data}", kernel_layout="{kernel}", out_layout="{out}")
    return y

@R.function
def plain(x: R.Tensor({x.shape}, "float32"), w: R.Tensor({w.shape}, "float32")):
    y = R.nn.conv2d(x, w)
    return y
""")

    y = evaluate(module, "main", xs, ws)

    expected = evaluate(module, "plain", x, w)
    np.testing.assert_allclose(y, blocked(expected, "NCHW", out or data), rtol=1e-5, atol=1e-5)


def blocked(x: Any, plain: str, layout: str) -> Any:
    """`x`, whose axes are `plain`, in a layout such as ``NCHW4c``."""
    axes = [(letter, int(factor or 1)) for factor, letter in re.findall(r"(\d*)(\D)", layout)]
    factors = {letter.upper(): factor for letter, factor in axes if letter.islower()}
    split, letters = list[int](), ""
    for letter, extent in zip(plain, x.shape, strict=True):
        factor = factors.get(letter, 1)
        split += [extent // factor, *([factor] if letter in factors else [])]
        letters += letter + letter.lower() * (letter in factors)
    return x.reshape(split).transpose([letters.index(letter) for letter, _ in axes])
