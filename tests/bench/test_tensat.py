"""Lists of layers become modules of the shapes that they say, and run the same when optimized."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from bench.models import outcome_of
from bench.tensat import Model, Node, import_model, read_model
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Call, Function
from relax_egraph.ir.op import Op
from relax_egraph.ir.walk import bindings_of


def node(number: int, op: str, shape: list[int], *inputs: int, **attrs: Any) -> dict[str, Any]:
    return {"id": number, "op": op, "inputs": inputs, "attrs": attrs, "shape": shape}


WINDOW = {"kernel": [3, 3], "stride": [2, 2], "padding": "SAME"}
SAME = {"stride": [2, 2], "padding": "SAME", "groups": 1, "activation": "relu"}
VALID = {"stride": [1, 1], "padding": "VALID", "groups": 4, "activation": "none"}

SMALL = {
    "name": "small",
    "nodes": [
        node(0, "input", [1, 3, 8, 8]),
        node(1, "weight", [4, 3, 3, 3]),
        node(2, "conv2d", [1, 4, 4, 4], 0, 1, **SAME),
        *(node(k, "weight", [4]) for k in (3, 4, 5, 6)),
        node(7, "batchnorm", [1, 4, 4, 4], 2, 3, 4, 5, 6),
        node(8, "maxpool", [1, 4, 2, 2], 7, **WINDOW),
        node(9, "avgpool", [1, 4, 2, 2], 2, **WINDOW),
        node(10, "add", [1, 4, 2, 2], 8, 9),
        node(11, "concat", [1, 8, 2, 2], 8, 10, axis=1),
        node(12, "dropout", [1, 8, 2, 2], 11, raw=[1, 8, 2, 2]),
        node(13, "reshape", [1, 32], 12),
        node(14, "weight", [5, 32]),
        node(15, "transpose", [5, 32], 14, raw=[2, 1, 0, 1]),
        node(16, "matmul", [1, 5], 13, 15, transpose_b=True),
        node(17, "weight", [4, 1, 2, 2]),
        node(18, "conv2d", [1, 4, 3, 3], 2, 17, **VALID),
        node(19, "transpose", [4, 1, 3, 3], 18, perm=[1, 0, 2, 3]),
        node(20, "sigmoid", [4, 1, 3, 3], 19),
        node(21, "tanh", [4, 1, 3, 3], 19),
        node(22, "mul", [4, 1, 3, 3], 20, 21),
        node(23, "weight", [7]),
    ],
    "outputs": [16, 22],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "small.json"
    file.write_text(json.dumps(SMALL), "utf-8")
    return file


def function_of(module: rx.IRModule) -> Function:
    main = module["main"]
    assert isinstance(main, Function)
    return main


def test_layers_become_operators(path: Path) -> None:
    main = function_of(import_model(read_model(path)))
    values = [b.value for b in bindings_of(main.body) if hasattr(b, "value")]
    calls = [v for v in values if isinstance(v, Call)]

    assert [str(p.struct_info) for p in main.params] == ['R.Tensor((1, 3, 8, 8), "float32")']
    assert [c.op.name for c in calls if isinstance(c.op, Op)] == [
        *("nn.conv2d", "nn.relu", "nn.batch_norm", "nn.max_pool2d", "nn.avg_pool2d", "add"),
        *("concat", "nn.dropout", "reshape", "permute_dims", "matmul"),
        *("nn.conv2d", "permute_dims", "sigmoid", "tanh", "multiply"),
    ]
    assert [c.attrs["padding"] for c in calls if c.op in conv_and_pool(calls)] == [
        (1, 1),
        (1, 1),
        (1, 1),
        (0, 0),
    ]


def conv_and_pool(calls: list[Call]) -> list[object]:
    names = ("nn.conv2d", "nn.max_pool2d", "nn.avg_pool2d")
    return [c.op for c in calls if isinstance(c.op, Op) and c.op.name in names]


def test_the_same_file_is_the_same_module_and_another_seed_is_not(path: Path) -> None:
    x = np.ones((1, 3, 8, 8), np.float32)
    model = read_model(path)

    first, again, other = (evaluate(import_model(model, seed), "main", x) for seed in (0, 0, 1))

    assert np.array_equal(first[0], again[0])
    assert not np.array_equal(first[0], other[0])


def test_a_model_runs_the_same_when_it_is_optimized(path: Path) -> None:
    outcome = outcome_of(path, seconds=0)

    assert outcome.failures == []
    assert outcome.before.operators["nn.batch_norm"] == 1
    assert outcome.after.operators["nn.batch_norm"] == 0
    assert outcome.after.kernels.total() < outcome.before.kernels.total()


def test_a_node_of_another_shape_than_the_file_says_is_refused() -> None:
    x, relu = Node(0, "input", (), {}, (2, 3)), Node(1, "relu", (0,), {}, (2, 4))

    with pytest.raises(ValueError, match="node") as caught:
        import_model(Model("wrong", (x, relu), (1,)))

    assert str(caught.value) == (
        'wrong: node 1: relu of R.Tensor((2, 3), "float32") with {} is '
        'R.Tensor((2, 3), "float32"), needs shape [2, 4]'
    )


def test_an_operator_that_is_not_known_is_refused() -> None:
    x, y = Node(0, "input", (), {}, (2, 3)), Node(1, "swish", (0,), {}, (2, 3))

    with pytest.raises(ValueError, match="swish") as caught:
        import_model(Model("odd", (x, y), (1,)))

    assert str(caught.value) == "odd: node 1: no operator 'swish'"
