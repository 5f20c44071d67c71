"""Signals, images of columns, grids and caches of ONNX, with sizes of run time."""

from typing import Any

import numpy as np
import pytest

from tests.support.onnx_models import Array
from tests.support.onnx_nodes import check, floats, refusal, run

# --- transforms -------------------------------------------------------------------------


def parts(x: Array) -> Array:
    return np.stack([np.real(x), np.imag(x)], axis=-1)


@pytest.mark.parametrize(
    ("count", "axis", "length"), [(1, 1, None), (2, 0, None), (2, -2, 9), (2, 1, 4)]
)
def test_transforms_along_an_axis(count: int, axis: int, length: int | None) -> None:
    x = floats(3, 6, 5, count).astype(np.float64)
    signal = x[..., 0] + (1j * x[..., 1] if count == 2 else 0)
    place, wanted = axis % 4, None if length is None else np.asarray(np.int64(length))
    operands = (x, wanted, np.asarray(np.int64(axis)))
    shapes = {0: ("a", "b", "c", count)}

    whole = run("DFT", *operands, shapes=shapes)
    back = run("DFT", *operands, shapes=shapes, inverse=1)

    np.testing.assert_allclose(whole, parts(np.fft.fft(signal, length, place)), 1e-9, 1e-9)
    np.testing.assert_allclose(back, parts(np.fft.ifft(signal, length, place)), 1e-9, 1e-9)


@pytest.mark.parametrize("length", [67, 120, 202, 4096])
def test_long_transforms_take_the_factors_of_their_length(length: int) -> None:
    x = floats(2, length, 2).astype(np.float64)
    signal, fixed = x[..., 0] + 1j * x[..., 1], {0: ("n", length, 2)}

    whole = run("DFT", x, shapes=fixed)
    back = run("DFT", x, shapes=fixed, inverse=1)

    np.testing.assert_allclose(whole, parts(np.fft.fft(signal)), 1e-9, 1e-9, strict=True)
    np.testing.assert_allclose(back, parts(np.fft.ifft(signal)), 1e-9, 1e-9, strict=True)


@pytest.mark.parametrize("length", [8, 9, 67, 90, 105])
def test_half_the_frequencies_are_enough_for_real_numbers(length: int) -> None:
    x = floats(2, length, 1).astype(np.float64)
    fixed = {0: ("n", length, 1)}

    half = run("DFT", x, shapes=fixed, onesided=1)
    again = run(
        "DFT", half, np.asarray(np.int64(length)), shapes={0: ("n", "h", 2)}, onesided=1, inverse=1
    )

    np.testing.assert_allclose(half, parts(np.fft.rfft(x[..., 0])), 1e-9, 1e-9, strict=True)
    np.testing.assert_allclose(again, x, 1e-9, 1e-9, strict=True)


def test_older_opsets_name_the_axis() -> None:
    check("DFT", floats(2, 6, 5, 2), shapes={0: ("a", "b", "c", 2)}, axis=2, opset=19)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("windowed", [False, True])
def test_frames_of_a_signal_are_transformed(onesided: int, windowed: bool) -> None:
    x, step, size = floats(2, 50, 1), 7, 16
    window = np.hanning(size).astype(np.float32) if windowed else None
    operands = (x, np.asarray(np.int64(step)), window, np.asarray(np.int64(size)))

    result = run("STFT", *operands, shapes={0: ("n", "t", 1)}, onesided=onesided)

    frames = np.stack([x[:, k : k + size, 0] for k in range(0, 50 - size + 1, step)], 1)
    weighed = frames if window is None else frames * window
    whole = parts(np.fft.fft(weighed))
    expected = whole[:, :, : size // 2 + 1] if onesided else whole
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_filters_of_the_mel_scale() -> None:
    numbers = [np.asarray(np.int32(n)) for n in (8, 64, 8192)]
    edges = [np.asarray(np.float32(hertz)) for hertz in (0, 4096)]

    check("MelWeightMatrix", *numbers, *edges)


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows(op: str, periodic: int) -> None:
    check(op, np.asarray(np.int32(11)), periodic=periodic)


# --- images and caches ------------------------------------------------------------------

COLUMNS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((5, 5), (1, 5), {}),
    ((5, 5), (3, 3), {"pads": [1, 0, 1, 0], "strides": [2, 1]}),
    ((6, 6), (2, 2), {"dilations": [1, 5]}),
    ((4, 4, 4), (1, 2, 2), {"strides": [1, 2, 2]}),
    ((9,), (3,), {"strides": [2]}),
]


@pytest.mark.parametrize(("image", "block", "attrs"), COLUMNS)
def test_columns_are_summed_where_they_overlap(
    image: tuple[int, ...], block: tuple[int, ...], attrs: dict[str, Any]
) -> None:
    rank = len(image)
    strides, dilations = attrs.get("strides", [1] * rank), attrs.get("dilations", [1] * rank)
    pads = attrs.get("pads", [0] * 2 * rank)
    reach = [(b - 1) * d + 1 for b, d in zip(block, dilations, strict=True)]
    counts = [
        (image[k] + pads[k] + pads[rank + k] - reach[k]) // strides[k] + 1 for k in range(rank)
    ]
    x = floats(2, 3 * int(np.prod(block)), int(np.prod(counts)))
    operands = (x, np.array(image), np.array(block))

    check("Col2Im", *operands, shapes={1: (rank,), 2: (rank,)}, **attrs)
    check("Col2Im", *operands, shapes={0: x.shape, 1: (rank,), 2: (rank,)}, **attrs)


@pytest.mark.parametrize("wanted", [(10, 7), (4, 12), (11, 3), (5, 8)])
@pytest.mark.parametrize("fixed", [False, True])
def test_the_middle_is_cut_or_padded(wanted: tuple[int, int], fixed: bool) -> None:
    x = floats(5, 3, 8)
    shapes: dict[int, Any] = {1: (2,)} | ({0: x.shape} if fixed else {})

    check("CenterCropPad", x, np.array(wanted), axes=[0, -1], shapes=shapes)


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_a_cache_is_written_from_a_place_on(mode: str) -> None:
    cache, update = floats(2, 3, 8, 4), floats(2, 3, 3, 4, seed=1)
    first = np.array([5, 2 if mode == "linear" else 7])

    check("TensorScatter", cache, update, first, mode=mode)
    check("TensorScatter", cache, update, mode=mode)


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 3, 4, 5)])
def test_points_of_images_come_from_an_affine_map(size: tuple[int, ...], corners: int) -> None:
    rank = len(size) - 2
    theta = floats(2, rank, rank + 1)
    shapes = {0: ("n", rank, rank + 1), 1: (len(size),)}

    check("AffineGrid", theta, np.array(size), align_corners=corners, shapes=shapes)


def test_bits_of_integers_are_read_as_others() -> None:
    x = np.array([-1, 2**31 - 1, 0], np.int32)

    assert run("BitCast", x, to=12).tolist() == [2**32 - 1, 2**31 - 1, 0]
    assert refusal("BitCast", x, to=1) == "it reinterprets int32 as float32, needs integers"
