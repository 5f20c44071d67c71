"""Nodes over values of any kind, and egglog's constructors of them."""

import pytest

from relax_egraph.egraph.encoding.constructors import constructor_of, constructors
from relax_egraph.egraph.node import Node, leaf_node, opaque_node, scalar_node
from relax_egraph.egraph.readback.tables import Key
from relax_egraph.ir import dims
from relax_egraph.ir.expr import PrimValue
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo, TupleStructInfo, tensor

N, M = dims.symbol("n"), dims.symbol("m")
SHAPE = ShapeStructInfo((N, 4), 2)
JOINED = Node("concat", ((1, 2),), (("axis", 0),))
FULL = Node("full", (PrimValue(M, "int64"), SHAPE), (("dtype", "int64"),))


def test_a_node_is_moved_to_other_values() -> None:
    names = {1: "x", 2: "y"}.__getitem__

    assert JOINED.over(names) == Node("concat", (("x", "y"),), (("axis", 0),))
    assert Node("where", (1, None, SHAPE)).over(names) == Node("where", ("x", None, SHAPE))


def test_operands_are_values_alone() -> None:
    x = Key("Tensor", 1)  # pyright: ignore[reportArgumentType]

    assert JOINED.operands == (1, 2)
    assert Node("where", (x, None, SHAPE, (x, x))).operands == (x, x, x)
    assert FULL.operands == ()


def test_symbols_are_those_of_shapes_and_numbers() -> None:
    assert FULL.symbols == {"n", "m"}
    assert JOINED.symbols == set()


def test_struct_infos_are_what_the_rule_of_the_operator_takes() -> None:
    x = tensor((N,), "float32")
    infos: dict[int, TensorStructInfo] = {1: x, 2: x}

    assert JOINED.infos(infos.__getitem__) == (TupleStructInfo((x, x)),)
    assert FULL.infos(infos.__getitem__) == (PrimValue(M, "int64").struct_info, SHAPE)


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (leaf_node(3), "(Leaf 3)"),
        (scalar_node(0.5, "float32"), '(R.const 0.5 "float32")'),
        (opaque_node(1, (4, 5)), "(Opaque 1 (vec-of $4 $5))"),
        (Node("whole", (4,)), "(Whole $4)"),
        (Node("tuple_get", (4,), (("index", 1),)), "(R.tuple_get $4 1)"),
        (JOINED, "(R.concat (vec-of $1 $2) 0)"),
        (
            Node("broadcast_to", (1, SHAPE)),
            '(R.broadcast_to $1 (vec-of (DimSym "n") (DimSym "4")))',
        ),
        (
            Node("sum", (1,), (("axis", (1,)), ("keepdims", False))),
            "(R.sum $1 (vec-of 1) false)",
        ),
    ],
)
def test_a_node_is_written_as_rules_write_it(node: Node[int], text: str) -> None:
    assert constructor_of(node.op).text(node, "${}".format) == text


def test_an_operator_within_a_kernel_has_a_constructor_of_its_own() -> None:
    node = Node("add", (1, 2))

    assert constructor_of("add", within_kernel=True).text(node, str) == "(K.add 1 2)"


def test_an_attribute_that_is_left_out_is_a_value_that_says_so() -> None:
    ones = constructors()["R.ones_like"]
    node = ones.node([1, ""])

    assert node == Node("ones_like", (1,), (("dtype", None),))
    assert [arg for _, arg in ones.arguments(node)] == [1, ""]
