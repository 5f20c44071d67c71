"""Pictures of an e-graph and of kernels: what is in them, as one reads it."""

from xml.etree import ElementTree

import relax_egraph as rx
from relax_egraph.pictures.boxes import Box, Diagram, Row
from relax_egraph.pictures.egraphs import MOST_CLASSES, egraph_diagrams
from relax_egraph.pictures.kernels import kernel_diagrams
from relax_egraph.pictures.svg import document
from relax_egraph.reasons.explain import Reasons
from relax_egraph.reasons.touched import touched

SVG = "{http://www.w3.org/2000/svg}"

PROGRAM = """
@R.function
def main(x: R.Tensor(("n", 64), "float32"), w: R.Tensor((64, 64), "float32")):
    with R.dataflow():
        h = R.matmul(x, w)
        s = R.multiply(h, R.sigmoid(h))
        o = R.nn.softmax(R.matmul(s, w), axis=-1)
        R.output(o)
    return o
"""


def reasons(program: str = PROGRAM) -> Reasons:
    return rx.explain(rx.parse(program), hints={"n": 128})


def written(diagram: Diagram) -> list[str]:
    """Each box as a line of text, its reads by title."""
    titles = [box.title for box in diagram.boxes]
    return [
        f"{box.title} | {box.about} | "
        + "; ".join(f"{r.text.strip()} <- {[titles[k] for k in r.reads]}" for r in box.rows)
        for box in diagram.boxes
    ]


def test_kernels_with_their_operators_and_prices() -> None:
    (diagram,) = kernel_diagrams(reasons())

    assert diagram.caption == "main: 2 kernels and operators, 16.1 µs by the cost model"
    assert written(diagram) == [
        "x | (n, 64) float32 | ",
        "w | (64, 64) float32 | ",
        "fused kernel | 7.57 µs | s: (n, 64) float32 <- ['x', 'w']; matmul → nn.silu <- []",
        "fused kernel | 8.52 µs | o: (n, 64) float32 <- ['fused kernel', 'w']; "
        "matmul → nn.softmax <- []",
        "result |  | (n, 64) float32 <- ['fused kernel']",
    ]
    assert [box.tone for box in diagram.boxes] == [None, None, 0, 1, None]


def test_an_egraph_marks_the_chosen_nodes() -> None:
    (diagram,) = egraph_diagrams(reasons())

    assert diagram.caption == "main: 13 classes, 15 nodes"
    assert written(diagram) == [
        "o | (n, 64) float32 | ● R.nn.softmax lv1 1 <- ['lv1']; R.divide $3 $4 <- ['$3', '$4']",
        "lv1 | (n, 64) float32 | ● R.matmul s w <- ['s', 'w']",
        "$3 | (n, 64) float32 | R.exp $9 <- ['$9']",
        "$4 | (n, 64) float32 | R.broadcast_to $10 (n, 64) <- ['$10']",
        "s | (n, 64) float32 | ● R.nn.silu h <- ['h']; R.multiply h lv <- ['h', 'lv']",
        "w | (64, 64) float32 | w <- []",
        "$9 | (n, 64) float32 | R.subtract lv1 $17 <- ['lv1', '$17']",
        "$10 | (n, 1) float32 | R.sum $3 (vec-of 1) true <- ['$3']",
        "h | (n, 64) float32 | ● R.matmul x w <- ['x', 'w']",
        "lv | (n, 64) float32 | R.sigmoid h <- ['h']",
        "$17 | (n, 64) float32 | R.broadcast_to $23 (n, 64) <- ['$23']",
        "x | (n, 64) float32 | x <- []",
        "$23 | (n, 1) float32 | R.max lv1 (vec-of 1) true <- ['lv1']",
    ]
    assert {box.title: box.tone for box in diagram.boxes if box.tone is not None} == {
        **{"s": 0, "h": 0},
        **{"o": 1, "lv1": 1},
    }
    assert [box.title for box in diagram.boxes if box.result] == ["o"]


def test_a_picture_may_have_the_classes_alone_that_a_rule_touched() -> None:
    found = reasons()
    book = {rule.name: rule for rule in found.book.rules}
    only = [touched(region, book["silu-from-sigmoid"]) for region in found.egraphs]

    (diagram,) = egraph_diagrams(found, only)

    assert diagram.caption == "main: 1 of 13 classes, 15 nodes"
    assert written(diagram) == [
        "s | (n, 64) float32 | ● R.nn.silu h <- []; R.multiply h lv <- []",
    ]


def test_a_large_egraph_is_cut_at_the_classes_far_from_its_results() -> None:
    lines = [f"        a{k} = R.sin(R.add(a{k - 1}, x))" for k in range(1, 60)]
    body = "\n".join(lines)
    program = f"""
@R.function
def main(x: R.Tensor(("n", 64), "float32")):
    with R.dataflow():
        a0 = R.exp(x)
{body}
        R.output(a59)
    return a59
"""
    diagrams = egraph_diagrams(reasons(program))

    assert all(len(diagram.boxes) <= MOST_CLASSES for diagram in diagrams)
    assert [diagram.caption.split(",")[0] for diagram in diagrams] == [
        "main: 80 of 101 classes",
        "main: 21 classes",
    ]
    assert diagrams[0].boxes[0].result


def test_a_picture_is_one_file_of_xml_with_all_text_in_it() -> None:
    boxes = [Box("a<b", "(n,) float32", note='a "note"'), Box("c&d", rows=(Row("x" * 99, (0,)),))]
    root = ElementTree.fromstring(document([Diagram("two <boxes>", boxes)], "a & b"))

    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts == ["two <boxes>", "a<b", "(n,) float32", "c&d", "x" * 71 + "…"]
    notes = [title.text for title in root.iter(f"{SVG}title")]
    assert notes == ["a & b", 'a "note"', "x" * 99]
    assert len(list(root.iter(f"{SVG}path"))) == 1
