"""Modules as straight lines of operators, over tables of functions, and as ONNX models."""

from typing import Any

import numpy as np
import pytest

from bench.program import NotRunnable, as_function, passing, plain, program_of
from relax_egraph import ir
from relax_egraph.ir.expr import Constant, Expr, PrimValue, Tuple, TupleGetItem, Var
from relax_egraph.ir.module import IRModule


def module_of(*operators: str) -> IRModule:
    """``main(x: (n, 4))``: a weight is multiplied, a bias is added, then come unary `operators`."""
    x = ir.Var("x", ir.tensor((ir.symbol("n"), 4), "float32"))
    bb = ir.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            value: Expr = ir.call("matmul", x, ir.const(np.eye(4, 3, dtype=np.float32)))
            value = ir.call("add", value, ir.const(np.ones(3, np.float32)))
            for operator in operators:
                value = ir.call(operator, value)
            out = bb.emit_output(value)
        bb.emit_func_output(out)
    return bb.get()


def test_a_program_has_the_steps_in_order_and_names_what_they_read() -> None:
    program = program_of(module_of("nn.softmax"))

    names = program.names
    lines = [
        f"{names[s.result]} = {s.operator}({', '.join(map(str, read))}) {s.attrs}"
        for s in program.steps
        if (read := [names[o] for o in s.operands if isinstance(o, Var | Constant)])
    ]

    assert lines == [
        "v0 = matmul(x0, c0) {}",
        "v1 = add(v0, c1) {}",
        "v2 = nn.softmax(v1) {'axis': -1}",
    ]
    assert names[program.result] == "v2"
    assert {name: data.shape for name, data in program.constants.items()} == {
        "c0": (4, 3),
        "c1": (3,),
    }


def test_a_program_runs_over_any_table_of_operators() -> None:
    def written(name: str) -> Any:
        return plain(lambda *operands: f"{name}({', '.join(operands)})")

    table = {name: written(name) for name in ("matmul", "add", "nn.relu")}

    function = as_function(program_of(module_of("nn.relu")), table, lambda data: str(data.shape))

    assert function("x") == "nn.relu(add(matmul(x, (4, 3)), (3,)))"


def test_an_operator_that_is_not_in_the_table_is_named() -> None:
    with pytest.raises(NotRunnable, match=r"^no operator nn\.relu$"):
        as_function(
            program_of(module_of("nn.relu")),
            {"matmul": plain(np.matmul), "add": plain(np.add)},
            np.asarray,
        )


def test_a_module_of_more_than_operators_is_refused() -> None:
    x = ir.Var("x", ir.tensor((4, 4), "float32"))
    bb = ir.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(ir.call("tril", x, PrimValue(1))))

    with pytest.raises(NotRunnable, match="needs tensors and shapes alone"):
        program_of(bb.get())


def test_shapes_tuples_and_their_fields_are_written_as_python_has_them() -> None:
    n = ir.symbol("n")
    x = ir.Var("x", ir.tensor((n, 4), "float32"))
    bb = ir.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            joined = bb.emit(ir.call("concat", Tuple((x, x)), axis=0))
            parts = bb.emit(ir.call("split", joined, indices_or_sections=2, axis=1))
            second = bb.emit(TupleGetItem(parts, 1))
            out = bb.emit_output(ir.call("reshape", second, ir.shape((4, n))))
        bb.emit_func_output(out)
    table = {
        "concat": passing(np.concatenate),
        "split": passing(np.split),
        "reshape": plain(np.reshape),
    }

    function = as_function(program_of(bb.get()), table, np.asarray)

    given = np.arange(12.0).reshape(3, 4)
    both = np.concatenate((given, given), axis=0)
    np.testing.assert_array_equal(function(given), both[:, 2:].reshape(4, 3))


def test_an_onnx_model_has_the_same_steps_and_a_symbolic_extent() -> None:
    pytest.importorskip("onnx")
    from bench.onnx_writer import onnx_model

    graph = onnx_model(module_of("nn.gelu")).graph

    assert [(n.op_type, list(n.input), list(n.output)) for n in graph.node] == [
        ("MatMul", ["x0", "c0"], ["v0"]),
        ("Add", ["v0", "c1"], ["v1"]),
        ("Gelu", ["v1"], ["y"]),
    ]
    assert [d.dim_param or d.dim_value for d in graph.input[0].type.tensor_type.shape.dim] == [
        "n",
        4,
    ]
    assert [i.name for i in graph.initializer] == ["c0", "c1"]
