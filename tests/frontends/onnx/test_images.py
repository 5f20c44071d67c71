"""Image operators of ONNX against its own evaluator: resizes, grids, regions, boxes, windows."""

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

import relax_egraph as rx
from relax_egraph.errors import ModelError
from relax_egraph.script import print_module
from tests.support.onnx_models import Array, Extents, model, node, value

X = np.random.default_rng(0).normal(size=(2, 3, 5, 7)).astype(np.float32)
F32 = np.float32


def one_node(
    op: str,
    operands: list[Array | None],
    shape: Extents,
    *,
    weights: tuple[int, ...] = (),
    opset: int = 22,
    **attrs: Any,
) -> ModelProto:
    """A model of one node on an input of `shape`; operands at `weights` are constants."""
    given = {f"x{k}": o for k, o in enumerate(operands) if o is not None}
    constants = {f"x{k}": operands[k] for k in weights}
    inputs = [
        value(name, shape if name == "x0" else o.shape, o.dtype.name)
        for name, o in given.items()
        if name not in constants
    ]
    names = " ".join("_" if o is None else f"x{k}" for k, o in enumerate(operands))
    outputs = [value("y", [])]
    kept = {name: array for name, array in constants.items() if array is not None}
    return model([node(op, names, "y", **attrs)], inputs, outputs, kept, opset=opset)


def check(proto: ModelProto, *runs: dict[str, Array], error: float = 1e-5) -> str:
    """Compare each of `runs` with what ONNX's evaluator gives; the module's text."""
    module = rx.from_onnx(proto)
    machine = rx.VirtualMachine(rx.build(rx.optimize(module)))
    evaluator = ReferenceEvaluator(proto)
    for given in runs:
        expected: Any = evaluator.run(None, given)
        actual = machine["main"](*given.values())
        assert actual.dtype == expected[0].dtype
        np.testing.assert_allclose(actual, expected[0], rtol=error, atol=error)
    return print_module(module)


def check_resize(
    scales: list[float] | None, sizes: list[int] | None, *, known: bool = True, **attrs: Any
) -> str:
    """Resize images of two sizes."""
    empty = np.array([], F32)
    operands: list[Array | None] = [
        X,
        empty,
        empty if scales is None else np.array(scales, F32),
        None if sizes is None else np.array(sizes, np.int64),
    ]
    given = [k for k, o in enumerate(operands) if k and o is not None]
    proto = one_node(
        "Resize", operands, ["n", 3, "h", "w"], weights=tuple(given) if known else (1,), **attrs
    )
    late = {} if known else {f"x{k}": o for k in given[1:] if (o := operands[k]) is not None}
    return check(proto, {"x0": X, **late}, {"x0": X[:1, :, :4, :3], **late})


# --- resizes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "attrs",
    [
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"},
        {"mode": "linear"},
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
        {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1},
    ],
)
def test_whole_scales_of_images_are_our_resize(attrs: dict[str, Any]) -> None:
    text = check_resize([1, 1, 2, 3], None, **attrs)

    assert "R.image.resize2d" in text


POINTS = [
    {"mode": "nearest", "nearest_mode": "round_prefer_ceil"},
    {"mode": "nearest", "nearest_mode": "ceil", "coordinate_transformation_mode": "asymmetric"},
    {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"},
    {"mode": "cubic", "exclude_outside": 1},
    {"mode": "cubic", "antialias": 1},
    {"mode": "linear", "antialias": 1, "exclude_outside": 1},
]
LATE = [*POINTS[:2], *(pytest.param(attrs, marks=pytest.mark.fuzz) for attrs in POINTS[2:])]
"""With scales that are no constants: each of the others makes sympy think for seconds."""

SCALES = [1, 1, 0.6, 1.7]


@pytest.mark.parametrize("attrs", POINTS)
def test_points_are_where_scales_put_them(attrs: dict[str, Any]) -> None:
    check_resize(SCALES, None, **attrs)


@pytest.mark.parametrize("attrs", LATE)
def test_points_are_where_late_scales_put_them(attrs: dict[str, Any]) -> None:
    check_resize(SCALES, None, known=False, **attrs)


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
@pytest.mark.parametrize("known", [True, False])
def test_sizes_may_keep_the_aspect_ratio(policy: str, known: bool) -> None:
    text = check_resize(
        None, [6, 9], known=known, mode="linear", axes=[2, 3], keep_aspect_ratio_policy=policy
    )

    assert ("R.image.resize2d" in text) == (policy == "stretch")


def test_a_region_is_cropped_and_resized() -> None:
    check_region(["n", "c", "h", "w"], known=True)


@pytest.mark.parametrize(
    "image", [[2, 3, 5, 7], pytest.param(["n", "c", "h", "w"], marks=pytest.mark.fuzz)]
)
def test_a_late_region_is_cropped_and_resized(image: Extents) -> None:
    check_region(image, known=False)


def check_region(image: Extents, *, known: bool) -> None:
    """Crop and resize images, of the given extents."""
    region, sizes = np.array([0.25, 0.5, 0.75, 1.5], F32), np.array([3, 4])
    given = {"x1": region, "x3": sizes}
    proto = one_node(
        "Resize",
        [X, region, None, sizes],
        image,
        weights=(1, 3) if known else (),
        mode="linear",
        axes=[2, 3],
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=9.0,
    )

    check(proto, {"x0": X} if known else {"x0": X, **given})


@pytest.mark.parametrize(
    ("shape", "scales"),
    [((2, 3, 5), [1, 1, 2]), ((2, 3, 2, 3), [1, 2, 2, 1]), ((1, 2, 3, 2, 2), [1, 1, 2, 1, 3])],
)
def test_signals_volumes_and_channels_last_are_our_resize(
    shape: tuple[int, ...], scales: list[float]
) -> None:
    x = np.arange(np.prod(shape), dtype=F32).reshape(shape)
    named = [f"n{k}" for k in range(x.ndim)]
    proto = one_node("Resize", [x, None, np.array(scales, F32)], named, weights=(2,), mode="linear")

    assert "R.image.resize" in check(proto, {"x0": x})


def test_axes_of_no_image_are_resized_one_by_one() -> None:
    x = np.arange(24, dtype=F32).reshape(4, 6)
    proto = one_node("Resize", [x, None, np.array([1.5, 0.5], F32)], ["n", "m"], mode="cubic")

    check(proto, {"x0": x, "x2": np.array([1.5, 0.5], F32)})


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_interpolated_integers_are_rounded_and_saturate(mode: str) -> None:
    x = np.array([[[[0, 255, 3], [255, 0, 254]]]], np.uint8)
    scales = np.array([1, 1, 3, 2], F32)
    proto = one_node("Resize", [x, None, scales], [1, 1, "h", "w"], weights=(2,), mode=mode)

    check(proto, {"x0": x})


@pytest.mark.parametrize(
    ("opset", "weights", "attrs"),
    [(8, (), {"scales": [1.0, 1.0, 2.0, 3.0]}), (9, (1,), {}), (9, (), {})],
)
def test_upsamples_repeat_pixels(opset: int, weights: tuple[int, ...], attrs: Any) -> None:
    scales = np.array([1, 1, 2, 3], F32)
    operands: list[Array | None] = [X] if attrs else [X, scales]
    proto = one_node(
        "Upsample", operands, ["n", 3, "h", "w"], weights=weights, opset=opset, **attrs
    )
    machine = rx.VirtualMachine(rx.build(rx.optimize(rx.from_onnx(proto))))

    actual = machine["main"](*([X] if attrs or weights else [X, scales]))

    np.testing.assert_array_equal(actual, X.repeat(2, 2).repeat(3, 3))


# --- points -----------------------------------------------------------------------------


@pytest.mark.parametrize("beyond", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_images_are_read_at_the_points_of_a_grid(mode: str, beyond: str) -> None:
    grid = np.random.default_rng(1).uniform(-2.5, 2.5, (2, 4, 3, 2)).astype(F32)
    for align in (0, 1):
        proto = one_node(
            "GridSample", [X, grid], [2, "c", "h", "w"],
            mode=mode, padding_mode=beyond, align_corners=align,
        )  # fmt: skip

        check(proto, {"x0": X, "x1": grid}, {"x0": X[:, :1, :3], "x1": grid}, error=1e-4)


def test_a_grid_over_an_image_without_pixels_is_0() -> None:
    grid = np.zeros((2, 4, 3, 2), F32)
    proto = one_node("GridSample", [X, grid], [2, "c", "h", "w"])
    machine = rx.VirtualMachine(rx.build(rx.optimize(rx.from_onnx(proto))))

    np.testing.assert_array_equal(machine["main"](X[:, :, :0], grid), np.zeros((2, 3, 4, 3), F32))


@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("mode", ["avg", "max"])
def test_bins_of_boxes_are_pooled(mode: str, ratio: int) -> None:
    boxes = np.array([[0, 0, 4, 4], [-3, 1, 9, 2.5], [5, 3, 5.5, 3.25]], F32)
    places = np.array([0, 1, 1], np.int64)
    proto = one_node(
        "RoiAlign", [X, boxes, places], ["n", "c", "h", "w"],
        mode=mode, sampling_ratio=ratio, output_height=3, output_width=2, spatial_scale=0.75,
    )  # fmt: skip

    check(proto, {"x0": X, "x1": boxes, "x2": places})


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("center", [0, 1])
def test_boxes_that_a_better_one_overlaps_are_left_out(center: int, known: bool) -> None:
    rng = np.random.default_rng(2)
    boxes = rng.uniform(0, 4, (2, 12, 4)).astype(F32)
    scores = rng.integers(0, 6, (2, 3, 12)).astype(F32) / 6
    limits = [np.array([4]), np.array([0.3], F32), np.array([0.2], F32)]
    proto = one_node(
        "NonMaxSuppression", [boxes, scores, *limits], ["n", "b", 4],
        weights=(2, 3, 4) if known else (), center_point_box=center,
    )  # fmt: skip
    late = {} if known else {f"x{k}": a for k, a in enumerate(limits, 2)}

    check(proto, {"x0": boxes, "x1": scores, **late})


def test_windows_are_deformed_by_offsets() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2, 4, 5, 6)).astype(F32)
    weight, bias = rng.normal(size=(6, 2, 3, 2)).astype(F32), rng.normal(size=6).astype(F32)
    offset = rng.normal(size=(2, 2 * 3 * 2 * 2, 3, 6)).astype(F32)
    mask = rng.uniform(size=(2, 2 * 3 * 2, 3, 6)).astype(F32)
    proto = one_node(
        "DeformConv", [x, weight, offset, bias, mask], ["n", 4, 5, "w"],
        weights=(1, 3), group=2, offset_group=2, kernel_shape=[3, 2],
        strides=[2, 1], dilations=[1, 2], pads=[1, 1, 1, 1],
    )  # fmt: skip

    check(proto, {"x0": x, "x2": offset, "x4": mask}, error=1e-4)


@pytest.mark.parametrize("more", [0, 2])
def test_what_was_pooled_goes_back_to_its_place(more: int) -> None:
    x, places = X[:1, :1, :2, :2], np.array([[[[5, 7], [13, 8]]]])
    shape = np.array([1, 1, 4, 4 + more])
    attrs: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    operands: list[Array | None] = [x, places, shape] if more else [x, places]
    expected = np.zeros((1, 1, 4, 4), F32)
    expected.flat[places.ravel()] = x.ravel()
    proto = one_node("MaxUnpool", operands, [1, 1, 2, 2], **attrs)
    machine = rx.VirtualMachine(rx.build(rx.optimize(rx.from_onnx(proto))))

    actual = machine["main"](*(o for o in operands if o is not None))

    np.testing.assert_array_equal(actual, np.pad(expected, [(0, 0), (0, 0), (0, 0), (0, more)]))


# --- refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "operands", "attrs", "reason"),
    [
        ("Resize", [X], {}, "it has neither scales nor sizes"),
        (
            "Resize",
            [X, None, np.array([2.0], F32)],
            {},
            "its scales are [2.0], needs 4 values",
        ),
        (
            "Resize",
            [X, None, np.array([1, 1, 0, np.inf], F32)],
            {},
            "its scales are [1.0, 1.0, 0.0, inf], needs finite ones above 0",
        ),
        (
            "Resize",
            [X, None, np.array([2, 2], F32)],
            {"axes": [2, 3], "coordinate_transformation_mode": "tf_crop_and_resize"},
            "its coordinate_transformation_mode is 'tf_crop_and_resize', needs a roi",
        ),
        (
            "Resize",
            [X, None, np.array([2, 2], F32)],
            {"axes": [2, 3], "mode": "area"},
            "its mode is 'area', needs one of nearest, linear, bilinear, cubic",
        ),
        (
            "GridSample",
            [X, np.zeros((2, 1, 1, 2), F32)],
            {"padding_mode": "wrap"},
            "its padding_mode is 'wrap', needs one of zeros, border, reflection",
        ),
        (
            "ImageDecoder",
            [np.zeros(3, np.uint8)],
            {},
            "image files are not decoded here: give the model's input as pixels",
        ),
    ],
)
def test_what_is_refused_says_why(
    op: str, operands: list[Array | None], attrs: dict[str, Any], reason: str
) -> None:
    late = tuple(range(1, len(operands))) if op == "Resize" else ()
    weights = tuple(k for k in late if operands[k] is not None)
    first = operands[0]
    assert first is not None
    proto = one_node(op, operands, first.shape, weights=weights, **attrs)

    with pytest.raises(ModelError) as refused:
        rx.from_onnx(proto)

    assert str(refused.value).endswith(reason)
