"""The API of the documents, as their readers paste it: it works, or says what to write."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph import IRModule, VirtualMachine, build, parse, te
from relax_egraph.errors import IllFormed, IllTyped, ScriptError
from relax_egraph.ir import dims
from relax_egraph.ir.dataflow_mutator import DataflowMutator
from relax_egraph.ir.expr import Call, Function, Var
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.struct_info import tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.visitor import ExprVisitor
from relax_egraph.lower.pipeline import TO_LOOPS, TO_STAGES, TO_VM
from relax_egraph.passes import PassContext, lambda_lift, module_pass, remove_all_unused
from tests.seeds.programs import floats

MAIN = """\
@R.function
def main(x: R.Tensor((3, 4), "float32")) -> R.Tensor((3, 4), "float32"):
    with R.dataflow():
        lv0: R.Tensor((3, 4), "float32") = R.multiply(x, x)
        gv0: R.Tensor((3, 4), "float32") = R.add(x, x)
        R.output(gv0)
    return gv0
"""
"""A function of which the product is not used."""


def main() -> Function:
    function = parse(MAIN)["main"]
    assert isinstance(function, Function)
    return function


# --- text ------------------------------------------------------------------------------------


def test_a_function_alone_has_the_text_of_a_script() -> None:
    assert main().script() == MAIN
    assert f"{main()}\n" == MAIN
    assert_structural_equal(parse(main().script())["main"], main())


def test_modules_and_functions_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    module = parse(MAIN)

    module.show()
    main().show()

    assert capsys.readouterr().out == module.script() + MAIN


def test_blocks_bindings_and_calls_have_the_text_of_their_lines() -> None:
    body = main().body
    (block,) = body.blocks

    assert f"[{block!r}]" == (
        "[with R.dataflow():\n"
        '    lv0: R.Tensor((3, 4), "float32") = R.multiply(x, x)\n'
        '    gv0: R.Tensor((3, 4), "float32") = R.add(x, x)\n'
        "    R.output(gv0)]"
    )
    assert str(body) == f"{block}\nreturn gv0"
    assert str(block.bindings[0]) == 'lv0: R.Tensor((3, 4), "float32") = R.multiply(x, x)'
    assert str(block.bindings[0].value) == "R.multiply(x, x)"


def test_a_loop_function_and_a_conditional_have_text() -> None:
    module = parse("""
@I.ir_module
class M:
    @T.prim_func
    def twice(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        for i in range(4):
            b[i] = a[i] * 2.0

    @R.function
    def main(x: R.Tensor((), "float32"), c: R.Tensor((), "bool")):
        if c:
            y = R.exp(x)
        else:
            y = x
        return y
""")
    function = module["main"]
    assert isinstance(function, Function)

    assert str(module["twice"]).splitlines()[:2] == [
        "@T.prim_func",
        'def main(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):',
    ]
    assert str(function.body.blocks[0].bindings[0].value) == (
        "if c:\n"
        '    _: R.Tensor((), "float32") = R.exp(x)\n'
        "else:\n"
        '    _: R.Tensor((), "float32") = x'
    )


def test_what_no_script_has_still_has_a_text() -> None:
    branch = main().body

    assert str(Call(Var("f"), (branch,))).startswith("f(")


def test_a_closure_says_what_it_is_of() -> None:
    module = lambda_lift(
        parse("""
@R.function
def main(x: R.Tensor((3,), "float32")):
    @R.function
    def inner(y: R.Tensor((3,), "float32")):
        z = R.add(x, y)
        return z
    return inner
""")
    )

    closure = VirtualMachine(build(module))["main"](np.ones(3, np.float32))

    assert repr(closure) == "<closure of <main_inner(y, x)>, which binds its 1 last argument>"


# --- visitors and passes ---------------------------------------------------------------------


@pytest.mark.parametrize("base", [ExprVisitor, ExprMutator, DataflowMutator])
@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("visit_call_", "visit_call"),
        ("visit_seqexpr_", "visit_seq_expr"),
        ("visit_tuple_get_item_", "visit_tuple_getitem"),
    ],
)
def test_a_method_by_a_wrong_name_is_an_error_that_names_the_right_one(
    base: type, written: str, right: str
) -> None:
    with pytest.raises(TypeError) as raised:
        type("EwiseFMARewriter", (base,), {written: lambda self, op: op})  # pyright: ignore[reportUnknownLambdaType]

    assert str(raised.value) == (
        f"EwiseFMARewriter.{written} would never be called: the method is {right}; "
        f"super().{right}(…) visits what is below, as visit_expr_post_order of TVM"
    )


def test_methods_of_other_names_are_free() -> None:
    class Counter(ExprVisitor):
        def visit_every_call(self, call: Call) -> None:
            """Not a method of visitors."""

    assert Counter().visit_expr(main()) is None


def test_a_class_of_passes_is_decorated() -> None:
    @module_pass(opt_level=0, name="LowerToTensorIR")
    class LowerToTensorIRPass:
        """The wrapper of the document."""

        def __init__(self, kept: str) -> None:
            self.kept = kept

        def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
            assert ctx.opt_level == 2
            return IRModule({self.kept: mod[self.kept]})

    lower = LowerToTensorIRPass("main")

    assert (lower.name, lower.opt_level) == ("LowerToTensorIR", 0)
    assert [*lower(parse(MAIN)).functions] == ["main"]


def test_a_class_without_the_method_is_refused() -> None:
    class Empty:
        """No pass."""

    decorate: Any = module_pass(name="empty")

    with pytest.raises(TypeError, match=r"^@module_pass: the class Empty has no method transform"):
        decorate(Empty)


def test_a_pass_takes_a_function_alone() -> None:
    updated = remove_all_unused(main())

    assert updated.script() == MAIN.replace(
        '        lv0: R.Tensor((3, 4), "float32") = R.multiply(x, x)\n', ""
    )
    assert remove_all_unused(updated) is updated


def test_a_private_function_alone_stays_private() -> None:
    private = parse(MAIN.replace("@R.function", "@R.function(private=True)"))["main"]
    assert isinstance(private, Function)

    updated = remove_all_unused(private)

    assert updated.attrs == {"private": True}
    assert len(updated.body.blocks[0].bindings) == 1


def test_a_pass_that_adds_functions_needs_the_module() -> None:
    @module_pass(name="doubled")
    def doubled(module: IRModule) -> IRModule:
        return IRModule({"main": module["main"], "other": module["main"]})

    with pytest.raises(IllFormed) as raised:
        doubled(main())

    assert str(raised.value) == (
        "doubled: the functions of its result are main, other; "
        "give it a module, not a function alone"
    )


# --- building --------------------------------------------------------------------------------


def test_arithmetic_on_values_makes_calls() -> None:
    n = dims.symbol("n")
    x = Var("x", tensor((n, 4), "float32"))
    bb = rx.BlockBuilder()

    with bb.function("main", [x]):
        a = bb.emit(x + 1)
        b = bb.emit(2 * a - np.ones(4, np.float32))
        bb.emit_func_output(-((b / 3) ** 2) @ np.ones((4, 2), np.float32) // 1)

    given = floats(3, 4)
    expected = -(((2 * (given + 1) - 1) / np.float32(3)) ** 2) @ np.ones((4, 2), np.float32)
    result = VirtualMachine(build(bb.get()))["main"](given)
    np.testing.assert_allclose(result, expected // 1)


def test_an_array_before_a_value_is_an_operand() -> None:
    call = np.ones(4, np.float32) - Var("x", tensor((3, 4), "float32"))

    assert isinstance(call, Call)
    assert str(call) == 'R.subtract(metadata["relax.expr.Constant"][0], x)'
    assert call.struct_info == tensor((3, 4), "float32")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda: Var("x", tensor((4,), "int32")) + 1.5,
            'R.add of R.Tensor((4,), "int32") and 1.5: 1.5 is no int32',
        ),
        (
            lambda: 2 * Var("x"),
            "R.multiply of R.Object and 2: a number takes the dtype of the tensor, "
            "which is unknown; use const(number, dtype)",
        ),
    ],
)
def test_a_number_that_is_no_element_is_refused(wrong: Callable[[], Call], message: str) -> None:
    with pytest.raises(IllTyped) as raised:
        wrong()

    assert str(raised.value) == message


def test_a_comparison_in_python_is_refused() -> None:
    with pytest.raises(TypeError, match=r'write call\("greater_equal", x, y\)$'):
        _ = Var("x", tensor((4,), "float32")) >= 1


def test_a_list_of_tensors_makes_a_loop_function() -> None:
    a = te.placeholder((128, 128), name="A")
    b = te.compute((128, 128), lambda x, y: a[x, y] * 2, name="B")

    assert_structural_equal(te.create_prim_func([a, b]), te.create_prim_func(a, b))


def test_programs_of_instructions_are_built_by_the_facade() -> None:
    ib = rx.ExecBuilder()
    with ib.function("main", num_inputs=2):
        ib.emit_call("test.as_pasted.add", [ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))

    machine = rx.VirtualMachine(ib.get(), {"test.as_pasted.add": np.add})

    assert machine["main"](np.float32(1), np.float32(2)) == 3


def test_a_target_is_a_processor() -> None:
    with pytest.raises(ValueError, match="target") as raised:
        build(parse(MAIN), target="llvm")

    assert str(raised.value) == (
        "target 'llvm': LLVM knows no processor 'llvm'; a target is a processor, "
        'such as "native", "generic" or "x86-64-v3"; LLVM compiles for each'
    )


def test_one_target_is_enough() -> None:
    executable = build(parse(MAIN), target="generic")

    assert VirtualMachine(executable)["main"](np.ones((3, 4), np.float32)).sum() == 24


# --- scripts ---------------------------------------------------------------------------------


def test_what_is_lowered_for_the_machine_reads_back() -> None:
    module = parse("""
@R.function
def main(x: R.Tensor(("n", "m"), "float32"), s: R.Shape(ndim=2), c: R.Tensor((), "bool")):
    n = T.int64()
    m = T.int64()
    t = R.match_cast(s, R.Shape((n, m * 2)))
    y = R.reshape(x, (n * m,))
    if c:
        z = R.exp(y)
    else:
        z = R.add(y, y)
    return (z, t)
""")

    lowered = TO_VM(TO_LOOPS(TO_STAGES(module)))

    assert "R.vm.match_shape" in lowered.script()
    assert_structural_equal(parse(lowered.script()), lowered)


UNDECLARED = """\
from relax_egraph.script import ir as I, relax as R, tir as T

@R.function
def fn(x: R.Tensor((n, 4), "float32")):
    return x
"""


def run(tmp_path: Path, text: str) -> dict[str, object]:
    """The names of a file of Python."""
    file = tmp_path / "pasted.py"
    file.write_text(text)
    names: dict[str, object] = {"__name__": "pasted"}
    exec(compile(text, str(file), "exec", dont_inherit=True), names)
    return names


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python evaluates no annotations")
def test_an_undeclared_dimension_in_a_file_says_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(ScriptError) as raised:
        run(tmp_path, UNDECLARED)

    assert str(raised.value).partition("pasted.py:")[2] == (
        "4:21: n has no value in Python, which evaluates annotations\n"
        '    def fn(x: R.Tensor((n, 4), "float32")):\n'
        "                        ^\n"
        'write "n" in quotes, or n = T.int64() before, or '
        "`from __future__ import annotations` at the top of the file"
    )


@pytest.mark.parametrize(
    "text",
    [
        UNDECLARED.replace("(n, 4)", '("n", 4)'),
        UNDECLARED.replace("\n@R", "\nn = T.int64()\n@R"),
        UNDECLARED.replace("    return", "    n = T.int64()\n    return").replace(
            "from relax", "from __future__ import annotations\nfrom relax"
        ),
    ],
    ids=["quoted", "declared before", "not evaluated"],
)
def test_what_it_says_works(tmp_path: Path, text: str) -> None:
    function = run(tmp_path, text)["fn"]

    assert isinstance(function, Function)
    assert function.params[0].struct_info == tensor((dims.symbol("n"), 4), "float32")


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python evaluates no annotations")
def test_an_undeclared_dimension_of_a_method_says_so_too(tmp_path: Path) -> None:
    text = (
        UNDECLARED.partition("\n\n")[0]
        + """

@I.ir_module(s_tir=True)
class M:
    @T.prim_func(s_tir=True)
    def f(a: T.Buffer((4, k), "float32"), b: T.Buffer((4, k), "float32")):
        pass
"""
    )

    with pytest.raises(ScriptError, match="k has no value in Python"):
        run(tmp_path, text)
