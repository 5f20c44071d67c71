"""The picture of a run: what is in it, and where it stands."""

from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import pytest

from bench.labels import Box, placed
from bench.limits import Roof
from bench.result import OURS, Result
from bench.roofline import Point, roofline
from bench.roofline_svg import HEIGHT, LEFT, TOP, WIDTH, numbers_of, roofline_svg
from relax_egraph.vm.call_report import CallSum

ROOFS = (Roof("multiply-adds", 250e9, True), Roof("read", 40e9, False))
SVG = "{http://www.w3.org/2000/svg}"


def result(name: str, operations: int, nbytes: float, **seconds: float) -> Result:
    """A workload of one kernel, which takes half of our time."""
    own = seconds["ours"]
    kernel = CallSum("kernel", f"k<{name}>", 1, own / 2, round(nbytes), operations)
    others = {k: s for k, s in seconds.items() if k != "ours"}
    nothing: dict[str, float] = {}
    return Result(
        name,
        1,
        "arithmetic",
        float(operations),
        {},
        {OURS: own, **others},
        nothing,
        nothing,
        {},
        nothing,
        nbytes,
        (kernel,),
    )


PRODUCT = result("product & more", 10**9, 1e7, ours=5e-3, first=10e-3, second=8e-3)
COPY = result("copy", 10**6, 1e7, ours=5e-4, first=4e-4)


def test_a_workload_is_at_one_intensity_on_all_systems() -> None:
    (subject,) = roofline(ROOFS, [PRODUCT]).subjects

    assert subject.systems == (
        Point(OURS, 100.0, 200e9),
        Point("first", 100.0, 100e9),
        Point("second", 100.0, 125e9),
    )
    assert subject.kernels == (Point("k<product & more>", 100.0, 400e9),)
    assert subject.remark == "200 GFLOP/s, 1.60×"


def test_a_kernel_that_takes_next_to_no_time_is_left_out() -> None:
    small = CallSum("kernel", "small", 1, 1e-5, 100, 100)
    long = replace(PRODUCT, kernels=(*PRODUCT.kernels, small))

    (subject,) = roofline(ROOFS, [long]).subjects

    assert [k.name for k in subject.kernels] == ["k<product & more>"]


def test_what_has_no_operations_and_what_has_two_threads_is_left_out() -> None:
    idle = result("idle", 0, 1e6, ours=1e-3)
    two = Result("two", 2, "copy", 1.0, {}, {OURS: 1.0}, {}, {}, {}, {}, 1.0, PRODUCT.kernels)

    assert roofline(ROOFS, [idle, two, COPY]).subjects == roofline(ROOFS, [COPY]).subjects


def test_the_picture_is_svg_with_all_points_where_their_logarithms_are() -> None:
    text = roofline_svg(roofline(ROOFS, [PRODUCT, COPY]), "here & now")

    root = ElementTree.fromstring(text)
    said = {c.findtext(f"{SVG}title"): c for c in root.iter(f"{SVG}circle")}
    ours = said["product & more: relax-egraph: 200 GFLOP/s, 100 a byte"]
    slow = said["copy: first: 2.5 GFLOP/s, 0.1 a byte"]
    # powers of ten: 0.1 … 1000 operations a byte, 1 … 1000 GFLOP/s
    assert float(ours.get("cx", "")) == pytest.approx(LEFT + WIDTH * 3 / 4, abs=0.1)
    assert float(slow.get("cx", "")) == LEFT
    assert float(ours.get("cy", "")) == pytest.approx(TOP + HEIGHT * (1 - 2.30103 / 3), abs=0.1)
    assert {"multiply-adds 250 GFLOP/s", "read 40 GB/s", "here & now"} <= {
        t.text for t in root.iter(f"{SVG}text")
    }


def test_a_bandwidth_rises_to_the_peak() -> None:
    root = ElementTree.fromstring(roofline_svg(roofline(ROOFS, [PRODUCT, COPY]), ""))

    level, rising, *legend = (
        line for line in root.iter(f"{SVG}line") if line.get("class") == "roof"
    )
    assert [line.get("stroke-dasharray") for line in (level, rising)] == [
        line.get("stroke-dasharray") for line in legend
    ]
    assert rising.get("y2") == level.get("y1") == level.get("y2")
    assert float(rising.get("x1", "")) == LEFT
    # the peak is met at 250 / 40 operations a byte, the left border is at 0.1
    assert float(rising.get("x2", "")) == pytest.approx(LEFT + WIDTH * 1.79588 / 4, abs=0.1)


def test_the_same_results_make_the_same_picture() -> None:
    pictures = {roofline_svg(roofline(ROOFS, [PRODUCT, COPY]), "") for _ in range(2)}

    assert len(pictures) == 1


def test_numbers_of_workloads_at_one_place_are_beside_each_other() -> None:
    many = [result(f"w{k}", 10**9, 1e7, ours=5e-3 + k * 1e-6, first=6e-3) for k in range(60)]

    boxes = numbers_of(roofline(ROOFS, many))

    assert len(boxes) == 60
    assert not any(a.meets(b) for a, b in combinations(boxes, 2))
    frame = Box(LEFT, TOP, WIDTH, HEIGHT)
    assert all(frame.has(box) for box in boxes)


def test_a_label_goes_where_nothing_is_or_is_refused() -> None:
    frame, wall = Box(0, 0, 100, 40), Box(50, 0, 50, 40)

    (box,) = placed([(45, 20)], [(20, 10)], [wall], frame)

    assert frame.has(box)
    assert not box.meets(wall)
    with pytest.raises(ValueError, match="no place for a label"):
        placed([(45, 20)], [(60, 10)], [wall], frame)


def test_no_text_leaves_the_page_or_stands_on_another() -> None:
    systems = {"onnxruntime": 6e-3, "torch.compile": 7e-3, "openvino": 8e-3, "numpy": 9e-3}
    many = [
        result(f"LLaMA decode, cache {k}, weights in memory", 10**9, 1e7, ours=5e-3, **systems)
        for k in range(100, 145)
    ]
    names = ("multiply-adds", "read, memory", "copy, memory", "copy past caches, memory")
    roofs = [Roof(name, 250e9 / (k + 1), k == 0) for k, name in enumerate(names)]

    root = ElementTree.fromstring(roofline_svg(roofline(roofs, many), "Roofline: znver5"))

    page = Box(0, 0, float(root.get("width", "")), float(root.get("height", "")))
    boxes = [text_box(t) for t in root.iter(f"{SVG}text")]
    assert all(page.has(box) for box in boxes)
    assert not [(a, b) for a, b in combinations(boxes, 2) if a.meets(b)]


def text_box(element: ElementTree.Element) -> Box:
    """About where a text of 11 pixels stands: letters are 6 wide, and 9 high above the line."""
    width = 6.0 * len(element.text or "")
    anchor = "middle" if element.get("class") == "number" else element.get("text-anchor", "start")
    left = {"start": 0.0, "middle": width / 2, "end": width}[anchor]
    return Box(float(element.get("x", "")) - left, float(element.get("y", "")) - 9, width, 11)
