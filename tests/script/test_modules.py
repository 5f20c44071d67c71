"""What parsing and printing do beyond the text: nodes, names, places, constants."""

import numpy as np
import pytest

from relax_egraph.errors import IllFormed, Span
from relax_egraph.ir import BlockBuilder, IRModule, Var, call, const, dims, shape, symbol, tensor
from relax_egraph.ir.expr import (
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    If,
    MatchCast,
    SeqExpr,
    Tuple,
    VarBinding,
)
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import ObjectStructInfo
from relax_egraph.script import parse, print_module
from relax_egraph.tir.expr import Binary, DimSymbol, Imm
from relax_egraph.tir.stmt import For, PrimFunc, Seq

BLOCKS = """
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    n = T.int64()
    _ = R.call_pure_packed("f", x)
    with R.dataflow():
        lv = R.sum(x, axis=1)
        lv1 = R.match_cast(lv, R.Tensor((n,), "float32"))
        R.output(lv1)
    with R.dataflow():
        R.output()
    return lv1
"""


def main_of(module: IRModule) -> Function:
    function = module["main"]
    assert isinstance(function, Function)
    return function


def test_a_function_without_a_module_makes_a_module_of_it() -> None:
    module = parse(BLOCKS)

    assert list(module.functions) == ["main"]


def test_blocks_and_variables_are_those_that_are_written() -> None:
    function = main_of(parse(BLOCKS))

    kinds = [
        (type(block), [(type(b.var), b.var.name) for b in block.bindings])
        for block in function.body.blocks
    ]
    assert kinds == [
        (BindingBlock, [(Var, "_")]),
        (DataflowBlock, [(DataflowVar, "lv"), (Var, "lv1")]),
        (DataflowBlock, []),
    ]


def test_calls_and_casts_know_where_they_were_written() -> None:
    _, block, _ = main_of(parse(BLOCKS, filename="f.py")).body.blocks

    first, second = block.bindings
    assert isinstance(first.value, Call)
    assert first.value.span == Span("f.py", 7, 14)
    assert isinstance(second, MatchCast)
    assert second.span == Span("f.py", 8, 15)


def test_attributes_are_complete_and_converted() -> None:
    _, block, _ = main_of(parse(BLOCKS)).body.blocks

    value = block.bindings[0].value
    assert isinstance(value, Call)
    assert value.attrs == {"axis": (1,), "keepdims": False}


def test_an_indented_text_is_read_with_its_own_columns() -> None:
    indented = BLOCKS.replace("\n", "\n      ")

    _, block, _ = main_of(parse(indented, filename="f.py")).body.blocks

    value = block.bindings[0].value
    assert isinstance(value, Call)
    assert value.span == Span("f.py", 7, 20)


def test_a_variable_may_be_shadowed_and_both_are_printed_apart() -> None:
    text = """
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        x = R.exp(x)
        x = R.log(x)
        return x
    """

    module = parse(text)

    assert print_module(module) == (
        "@I.ir_module\n"
        "class Module:\n"
        "    @R.function\n"
        '    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):\n'
        '        x1: R.Tensor((2,), "float32") = R.exp(x)\n'
        '        x2: R.Tensor((2,), "float32") = R.log(x1)\n'
        "        return x2\n"
    )


def test_a_dataflow_variable_shadows_only_inside_its_block() -> None:
    text = """
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        with R.dataflow():
            x = R.exp(x)
            x = R.exp(x)
            y = R.exp(x)
            R.output(y)
        return x
    """

    function = main_of(parse(text))

    assert function.body.body is function.params[0]


def test_names_that_are_no_identifiers_are_printed_as_some() -> None:
    n = symbol("n")
    names = ["/conv.1/out", "class", "n", "R", "1x", "x", "x"]
    params = [Var(name, tensor((n,), "float32")) for name in names]
    function = Function(tuple(params), SeqExpr((), Tuple(tuple(params))), tensor(None, None))
    module = IRModule({"main.f": function})

    text = print_module(module)

    assert text == (
        "@I.ir_module\n"
        "class Module:\n"
        "    @R.function\n"
        "    def main_f(\n"
        '        _conv_1_out: R.Tensor(("n",), "float32"),\n'
        '        _class: R.Tensor(("n",), "float32"),\n'
        '        n1: R.Tensor(("n",), "float32"),\n'
        '        R1: R.Tensor(("n",), "float32"),\n'
        '        _1x: R.Tensor(("n",), "float32"),\n'
        '        x: R.Tensor(("n",), "float32"),\n'
        '        x1: R.Tensor(("n",), "float32"),\n'
        "    ) -> R.Tensor():\n"
        "        n = T.int64()\n"
        "        return (_conv_1_out, _class, n1, R1, _1x, x, x1)\n"
    )


def test_a_module_prints_itself() -> None:
    module = IRModule({})

    assert str(module) == module.script() == "@I.ir_module\nclass Module:\n    pass\n"
    assert list(parse(str(module)).functions) == []


def test_constants_are_given_and_shared() -> None:
    text = """
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        y = R.add(x, metadata["relax.expr.Constant"][1])
        z = R.add(y, metadata["relax.expr.Constant"][1])
        return z
    """
    arrays = [np.zeros(3, np.float32), np.ones(2, np.float32)]

    function = main_of(parse(text, constants=arrays))

    first, second = [
        b.value.args[1] for b in function.body.blocks[0].bindings if isinstance(b.value, Call)
    ]
    assert isinstance(first, Constant)
    assert first is second
    assert first.data is arrays[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scalars_are_printed_bit_by_bit(dtype: str) -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**31, 500).astype("int32")
    values = bits.view("float32") if dtype == "float32" else bits * np.float64(1e-300) / 3
    values = values[np.isfinite(values)].astype(dtype)
    fields = tuple(const(v, dtype) for v in values)
    function = Function((), SeqExpr((), Tuple(fields)), ObjectStructInfo())

    result = main_of(parse(print_module(IRModule({"main": function})))).body.body

    assert isinstance(result, Tuple)
    read = [f.data for f in result.fields if isinstance(f, Constant)]
    np.testing.assert_array_equal(np.array(read), values)


def test_an_operand_that_has_no_form_is_refused() -> None:
    x = Var("x", tensor((), "bool"))
    branch = If(x, SeqExpr((), x), SeqExpr((), x), x.struct_info)
    block = BindingBlock((VarBinding(Var("y"), Call(OPS["negative"], (branch,))),))
    module = IRModule({"main": Function((x,), SeqExpr((block,), x), x.struct_info)})

    with pytest.raises(IllFormed) as raised:
        print_module(module)

    assert str(raised.value) == "If as an operand has no script form: bind it to a variable"


def test_nested_operands_of_a_module_are_printed_and_read_in_normal_form() -> None:
    x = Var("x", tensor((2,), "float32"))
    block = BindingBlock((VarBinding(Var("y"), call("exp", call("log", x))),))
    module = IRModule({"main": Function((x,), SeqExpr((block,), x), x.struct_info)})

    text = print_module(module)
    (read,) = main_of(parse(text)).body.blocks

    assert "y: R.Object = R.exp(R.log(x))\n" in text
    assert [b.var.name for b in read.bindings] == ["gv", "y"]


def test_what_the_builder_builds_is_printed() -> None:
    builder = BlockBuilder()
    x = Var("x", tensor((symbol("n"), 2), "float32"))
    with builder.function("main", [x], {"primitive": True}):
        with builder.dataflow():
            total = builder.emit(call("sum", x, axis=0))
            result = builder.emit_output(call("reshape", total, shape((2, 1))))
        builder.emit_func_output(result)

    assert print_module(builder.get()) == (
        "@I.ir_module\n"
        "class Module:\n"
        "    @R.function\n"
        '    def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor((2, 1), "float32"):\n'
        "        n = T.int64()\n"
        '        R.func_attr({"primitive": True})\n'
        "        with R.dataflow():\n"
        '            lv: R.Tensor((2,), "float32") = R.sum(x, axis=[0])\n'
        '            gv: R.Tensor((2, 1), "float32") = R.reshape(lv, R.shape([2, 1]))\n'
        "            R.output(gv)\n"
        "        return gv\n"
    )


def test_loops_are_read_as_nodes_and_nothing_is_folded() -> None:
    text = """
    @T.prim_func
    def f(A: T.Buffer(("n",), "float32")):
        for i in T.serial(n + 0):
            pass
    """

    function = parse(text)["f"]

    assert isinstance(function, PrimFunc)
    assert isinstance(function.body, For)
    assert function.body.extent == Binary("+", DimSymbol("n"), Imm(0, "int64"))
    assert function.body.body == Seq(())


def test_a_maximum_of_three_dimensions_is_read_as_it_is_printed() -> None:
    info = tensor((dims.parse("max(n * 2, 6, m)"),), "float32")
    text = f"@R.function\ndef main(x: R.Tensor(('n', 'm')), y: {info}):\n    return y\n"
    text = text.replace("(max(n * 2, 6, m),)", '("max(n * 2, 6, m)",)')

    assert main_of(parse(text)).params[1].struct_info == info
