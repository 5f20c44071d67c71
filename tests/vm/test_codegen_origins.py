"""Instructions are named after the values that they compute."""

from typing import Any

import numpy as np

import relax_egraph as rx
from relax_egraph.ir.block_builder import BlockBuilder, call_packed, call_tir
from relax_egraph.ir.expr import Call, ExternFunc, Tuple, TupleGetItem, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import tensor
from relax_egraph.lower.pipeline import TO_VM, lower_module
from relax_egraph.lower.vm_codegen import codegen
from relax_egraph.vm import ExecBuilder, Executable
from relax_egraph.vm.bytecode import Call as CallInstruction
from tests.support.lowered import f32, loops, lower, m, n


def origins_of(exe: Executable, function: str = "main") -> list[tuple[str, str]]:
    """What is called and what it computes, but for what the machine itself does."""
    start, code = exe[function].start, exe.instructions(exe[function])
    calls = [
        (exe.callees[i.callee], exe.origins[start + at])
        for at, i in enumerate(code)
        if isinstance(i, CallInstruction)
    ]
    return [(name, origin) for name, origin in calls if not name.startswith("vm.builtin.")]


SOURCE = """@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(("n", 4), "f32"), w: R.Tensor((4, 4), "f32"), c: R.Tensor((), "bool")):
        with R.dataflow():
            lv0 = R.matmul(x, w)
            lv1 = R.nn.relu(lv0)
            gv = R.add(lv1, x)
            R.output(gv)
        if c:
            r = R.exp(gv)
        else:
            half = R.sqrt(gv)
            r = R.exp(half)
        u = R.unique(r)
        return (r, u)
"""


def test_kernels_have_the_names_and_the_places_of_what_they_compute() -> None:
    exe = codegen(TO_VM(lower_module(rx.parse(SOURCE))))

    assert origins_of(exe) == [
        ("matmul", "lv0 (<script>:6:19)"),
        ("relu", "lv1 (<script>:7:19)"),
        ("add", "gv (<script>:8:18)"),
        ("exp", "r (<script>:11:17)"),
        ("sqrt", "half (<script>:13:20)"),
        ("exp", "r (<script>:14:17)"),
        ("relax.run.unique", "u (<script>:15:13)"),
    ]


FUSED = """@I.ir_module
class M:
    @R.function(private=True)
    def fused(x: R.Tensor(("n", 4), "float32")):
        R.func_attr({"primitive": True})
        with R.dataflow():
            lv = R.exp(x)
            gv = R.negative(lv)
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        cls = M
        whole = cls.fused(x)
        return whole
"""


def test_what_was_fused_has_the_name_of_the_whole() -> None:
    exe = codegen(TO_VM(lower_module(rx.parse(FUSED))))

    assert [(name, origin.partition(" ")[0]) for name, origin in origins_of(exe)] == [
        ("fused", "whole")
    ]


def test_the_names_of_values_survive_optimization() -> None:
    exe = codegen(TO_VM(lower_module(rx.optimize(rx.parse(SOURCE)))))

    names = [origin.partition(" ")[0] for _, origin in origins_of(exe)]
    assert {"gv", "r", "u"} <= set(names) <= {"lv0", "lv1", "gv", "half", "r", "u"}


def test_of_several_results_each_is_named() -> None:
    bb = BlockBuilder()
    f = bb.add_func(loops((n,), (n,), (n, n), num_outputs=2), "f")
    x = Var("x", f32(m))
    with bb.function("main", [x]):
        both = bb.emit(call_tir(f, [x], [f32(m), f32(m, m)]), "pair")
        bb.emit_func_output(bb.emit(TupleGetItem(both, 1), "second"))

    exe = codegen(lower(bb.get()))

    assert origins_of(exe) == [("f", "pair_0, pair_1")]


def in_place() -> IRModule:
    bb = BlockBuilder()
    f = bb.add_func(loops((n,), num_outputs=0), "f")
    x = Var("x", f32(m))
    attrs: dict[str, Any] = {"inplace_indices": (0,)}
    with bb.function("main", [x]):
        made = bb.emit(call_packed("make", [x], [f32(m)]), "made")
        done = Call(OPS["call_tir_inplace"], (f, Tuple((made,))), attrs, (f32(m),))
        bb.emit_func_output(bb.emit(done, "done"))
    return bb.get()


def test_what_is_computed_in_place_has_the_name_of_the_result() -> None:
    exe = codegen(lower(in_place()))

    assert origins_of(exe) == [("make", "made"), ("f", "done")]


def test_packed_functions_are_named_after_what_they_return_or_write() -> None:
    bb = BlockBuilder()
    x = Var("x", f32(n))
    with bb.function("main", [x]):
        a = bb.emit(call_packed("returns", [x], [f32(n)]), "a")
        operands = (ExternFunc("writes"), Tuple((x, a)))
        b = bb.emit(Call(OPS["call_dps_packed"], operands, {}, (f32(n),)), "b")
        bb.emit(call_packed("looks", [b], [tensor(None, "float32", 1)]), "unused")
        operands = (ExternFunc("writes"), Tuple((b,)))
        c = bb.emit(Call(OPS["call_dps_packed"], operands, {}, (f32(n),)), "c")
        bb.emit_func_output(c)

    exe = codegen(lower(bb.get()))

    assert origins_of(exe) == [
        *(("returns", "a"), ("writes", "b"), ("looks", "unused"), ("writes", "c"))
    ]


def test_memory_and_shapes_have_the_names_of_their_variables_and_checks_have_none() -> None:
    exe = codegen(TO_VM(lower_module(rx.parse(SOURCE))))
    names = dict[str, set[str]]()
    for at, instruction in enumerate(exe.instructions(exe["main"])):
        if isinstance(instruction, CallInstruction):
            names.setdefault(exe.callees[instruction.callee], set()).add(exe.origins[at])

    assert names["vm.builtin.alloc_shape_heap"] == {"shape_heap"}
    assert names["vm.builtin.check_tensor_info"] == {""}
    assert names["vm.builtin.read_if_cond"] == {""}
    assert names["vm.builtin.copy"] == {"r"}
    assert "lv0" in names["vm.builtin.alloc_tensor"]


def test_the_python_program_has_the_origins() -> None:
    exe = codegen(TO_VM(lower_module(rx.parse(SOURCE))))
    scope: dict[str, Any] = {"ExecBuilder": ExecBuilder, "constants": exe.constants}

    exec(exe.as_python(), scope)

    assert scope["executable"].origins == exe.origins
    assert scope["executable"].as_text() == exe.as_text()
    assert np.array_equal(scope["executable"].code, exe.code)
