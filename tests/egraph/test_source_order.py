"""What comes out reads like what went in."""

from relax_egraph.egraph.node import Node, leaf_node
from relax_egraph.egraph.readback.source_order import source_first
from relax_egraph.egraph.view import EClass, ENode, View
from relax_egraph.ir.struct_info import tensor

INFO = tensor((4,), "float32")


def of(sort: str, *nodes: ENode) -> EClass:
    return EClass("tensor" if sort == "tensor" else "kernel", nodes, INFO)


X, Y = of("tensor", leaf_node(0)), of("tensor", leaf_node(1))
LOADED = View({0: X, 1: Y, 2: of("tensor", Node("subtract", (1, 0)))}, (2,))
"""y - x."""


def test_the_written_operator_comes_first_and_its_swapped_form_is_not_repeated() -> None:
    loaded = View({0: X, 1: Y, 2: of("tensor", Node("add", (1, 0)))}, (2,))
    nodes = (Node("maximum", (0, 1)), Node("add", (0, 1)), Node("add", (1, 0)))
    view = View({0: X, 1: Y, 2: of("tensor", *nodes)}, (2,))

    ordered = source_first(view, loaded, {0: 0, 1: 1, 2: 2})

    assert ordered.classes[2].nodes == (Node("add", (1, 0)), Node("maximum", (0, 1)))


def test_a_kernel_node_gets_the_order_of_the_operator_it_is_made_from() -> None:
    loaded = View({0: X, 1: Y, 2: of("tensor", Node("add", (1, 0)))}, (2,))
    view = View(
        {
            0: of("tensor", Node("add", (2, 1)), Node("store", (3,))),
            1: X,
            2: Y,
            3: of("kernel", Node("add", (4, 5))),
            4: of("kernel", Node("load", (1,))),
            5: of("kernel", Node("load", (2,))),
        },
        (0,),
    )

    ordered = source_first(view, loaded, {0: 1, 1: 2, 2: 0})

    assert ordered.classes[3].nodes == (Node("add", (5, 4)),)


def test_what_nobody_wrote_stays_as_it_is() -> None:
    view = View({0: X, 1: Y, 2: of("tensor", Node("multiply", (0, 1)))}, (2,))

    assert source_first(view, LOADED, {0: 0, 1: 1, 2: 2}) == view


def test_an_operator_that_was_not_made_equal_is_not_swapped() -> None:
    view = View({0: X, 1: Y, 2: of("tensor", Node("subtract", (1, 0)))}, (2,))

    assert source_first(view, LOADED, {0: 0, 1: 1, 2: 2}) == view
