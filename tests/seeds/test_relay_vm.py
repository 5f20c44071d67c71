"""The Relay machine's instructions, objects and files, by what plays their part here."""

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import RunError
from relax_egraph.passes import inline_private_functions, lambda_lift, normalize
from relax_egraph.vm import ExecBuilder, Executable, VirtualMachine
from relax_egraph.vm.bytecode import Opcode
from relax_egraph.vm.closure import Closure
from relax_egraph.vm.sections import SECTIONS
from tests.seeds.programs import Array, floats, read

EQUAL: dict[str, Callable[..., Any]] = {"equal": operator.eq}


def run(emit: Callable[[ExecBuilder], None], *args: Any, packed: Any = None) -> Any:
    """The result of the function that `emit` emits, of `args`."""
    ib = ExecBuilder()
    with ib.function("main", len(args), allow_unused=True):
        emit(ib)
    return VirtualMachine(ib.get(), packed)["main"](*args)


# --- calls --------------------------------------------------------------------------------


def test_invoke_and_ret_pass_a_result_to_the_register_of_the_caller() -> None:
    ib = ExecBuilder()
    with ib.function("double", num_inputs=1):
        ib.emit_call("add", [ib.r(0), ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    with ib.function("main", num_inputs=1):
        ib.emit_call("double", [ib.r(0)], dst=ib.r(7))
        ib.emit_call("double", [ib.r(7)], dst=ib.r(8))
        ib.emit_call("add", [ib.r(7), ib.r(8)], dst=ib.r(9))
        ib.emit_ret(ib.r(9))

    vm = VirtualMachine(ib.get(), {"add": np.add})

    np.testing.assert_array_equal(vm["main"](np.array([1, 2])), [6, 12])


def test_invoke_packed_takes_inputs_and_outputs() -> None:
    def emit(ib: ExecBuilder) -> None:
        ib.emit_call("vm.builtin.alloc_storage", [ib.vm_state(), 64], dst=ib.r(2))
        ib.emit_call("vm.builtin.alloc_tensor", [ib.r(2), 0, (3,), "float32"], dst=ib.r(3))
        ib.emit_call("fused_add", [ib.r(0), ib.r(1), ib.r(3)])
        ib.emit_ret(ib.r(3))

    def fused_add(a: Array, b: Array, out: Array) -> None:
        np.add(a, b, out=out)

    x, y = floats(3), np.ones(3, np.float32)

    result = run(emit, x, y, packed={"fused_add": fused_add})

    np.testing.assert_array_equal(result, x + y)


def test_alloc_closure_and_invoke_closure() -> None:
    ib = ExecBuilder()
    with ib.function("scaled", num_inputs=2):
        ib.emit_call("mul", [ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    with ib.function("main", num_inputs=2):
        ib.emit_call("vm.builtin.make_closure", [ib.f("scaled"), ib.r(1)], dst=ib.r(2))
        ib.emit_call("vm.builtin.invoke_closure", [ib.r(2), ib.r(0)], dst=ib.r(3))
        ib.emit_ret(ib.r(3))

    vm = VirtualMachine(ib.get(), {"mul": np.multiply})

    np.testing.assert_array_equal(vm["main"](np.array([1, 2]), np.array(3)), [3, 6])


# --- memory -------------------------------------------------------------------------------


def test_alloc_storage_and_alloc_tensor_of_a_constant_shape() -> None:
    def emit(ib: ExecBuilder) -> None:
        ib.emit_call("vm.builtin.alloc_storage", [ib.vm_state(), 24], dst=ib.r(0))
        ib.emit_call("vm.builtin.alloc_tensor", [ib.r(0), 0, (2, 3), "float32"], dst=ib.r(1))
        ib.emit_ret(ib.r(1))

    tensor = run(emit)

    assert (tensor.shape, tensor.dtype.name) == ((2, 3), "float32")
    assert tensor.ctypes.data % 64 == 0


@pytest.mark.parametrize("shape", [(2, 3), (), (0, 5)])
def test_alloc_tensor_reg_takes_the_shape_from_a_register(shape: tuple[int, ...]) -> None:
    def emit(ib: ExecBuilder) -> None:
        ib.emit_call("vm.builtin.shape_of", [ib.r(0)], dst=ib.r(1))
        ib.emit_call("vm.builtin.size_of", [ib.r(1), "int16"], dst=ib.r(2))
        ib.emit_call("vm.builtin.alloc_storage", [ib.vm_state(), ib.r(2)], dst=ib.r(3))
        ib.emit_call("vm.builtin.alloc_tensor", [ib.r(3), 0, ib.r(1), "int16"], dst=ib.r(4))
        ib.emit_ret(ib.r(4))

    tensor = run(emit, np.zeros(shape))

    assert (tensor.shape, tensor.dtype.name) == (shape, "int16")


# --- data ---------------------------------------------------------------------------------


def test_alloc_adt_get_field_and_get_tag() -> None:
    def emit(ib: ExecBuilder) -> None:
        ib.emit_call("vm.builtin.make_tagged", [ib.imm(1), ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_call("vm.builtin.get_tag", [ib.r(2)], dst=ib.r(3))
        ib.emit_call("vm.builtin.get_field", [ib.r(2), 1], dst=ib.r(4))
        ib.emit_call("vm.builtin.make_tuple", [ib.r(3), ib.r(4)], dst=ib.r(5))
        ib.emit_ret(ib.r(5))

    head, tail = np.array(3), np.array(4)

    tag, field = run(emit, head, tail)

    assert tag == 1
    assert field is tail


def test_load_const_and_load_consti() -> None:
    weights = floats(4)

    def emit(ib: ExecBuilder) -> None:
        ib.emit_call("vm.builtin.copy", [weights], dst=ib.r(0))
        ib.emit_call("vm.builtin.copy", [ib.imm(7)], dst=ib.r(1))
        ib.emit_call("vm.builtin.copy", [np.array(7)], dst=ib.r(2))
        ib.emit_call("vm.builtin.make_tuple", [ib.r(0), ib.r(1), ib.r(2)], dst=ib.r(3))
        ib.emit_ret(ib.r(3))

    tensor, number, scalar = run(emit)

    np.testing.assert_array_equal(tensor, weights)
    assert number == 7
    assert (scalar.shape, scalar.item()) == ((), 7)


# --- control ------------------------------------------------------------------------------


def tag_name(ib: ExecBuilder) -> None:
    """``match tag: case 0: "nil"; case 1: "cons"``: any other is fatal."""
    cons, neither = ib.label(), ib.label()
    ib.emit_call("equal", [ib.r(0), 0], dst=ib.r(1))
    ib.emit_if(ib.r(1), cons)
    ib.emit_ret("nil")
    ib.place(cons)
    ib.emit_call("equal", [ib.r(0), 1], dst=ib.r(1))
    ib.emit_if(ib.r(1), neither)
    ib.emit_ret("cons")
    ib.place(neither)
    ib.emit_call("vm.builtin.fatal", ["no case of the match fits"], dst=ib.r(1))
    ib.emit_ret(ib.r(1))


def test_if_compares_with_a_target_and_goes_on_or_jumps() -> None:
    assert [run(tag_name, tag, packed=EQUAL) for tag in (0, 1)] == ["nil", "cons"]


def test_fatal_fails() -> None:
    with pytest.raises(RunError) as failed:
        run(tag_name, 2, packed=EQUAL)

    assert str(failed.value) == "no case of the match fits"
    assert failed.value.__notes__ == [
        "virtual machine stack, innermost last:\n  main, instruction 6: "
        "call  vm.builtin.fatal  in: c[2]='no case of the match fits'  dst: %1"
    ]


def test_goto_jumps_by_an_offset() -> None:
    def emit(ib: ExecBuilder) -> None:
        ib.emit_goto(2)
        ib.emit_ret("skipped")
        ib.emit_ret("reached")

    assert run(emit) == "reached"


# --- objects, frames, dispatch --------------------------------------------------------------


def test_objects_are_arrays_tuples_and_closures() -> None:
    ib = ExecBuilder()
    with ib.function("first", num_inputs=2, allow_unused=True):
        ib.emit_ret(ib.r(0))
    with ib.function("main", num_inputs=1):
        ib.emit_call("vm.builtin.make_closure", [ib.f("first"), ib.r(0)], dst=ib.r(1))
        ib.emit_call("vm.builtin.make_tuple", [ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))

    result = VirtualMachine(ib.get())["main"](floats(2))

    assert [type(result), *map(type, result)] == [tuple, np.ndarray, Closure]


def sum_down() -> Executable:
    """``main(n)`` is ``n + main(n - 1)``, and ``main(0)`` is 0: each call has registers."""
    ib = ExecBuilder()
    with ib.function("main", num_inputs=1):
        zero = ib.label()
        ib.emit_if(ib.r(0), zero)
        ib.emit_call("sub", [ib.r(0), 1], dst=ib.r(1))
        ib.emit_call("main", [ib.r(1)], dst=ib.r(2))
        ib.emit_call("add", [ib.r(0), ib.r(2)], dst=ib.r(3))
        ib.emit_ret(ib.r(3))
        ib.place(zero)
        ib.emit_ret(ib.imm(0))
    return ib.get()


def test_a_frame_says_how_the_caller_goes_on() -> None:
    vm = VirtualMachine(sum_down(), {"sub": operator.sub, "add": operator.add})

    assert [vm["main"](n) for n in (0, 1, 4, 3000)] == [0, 1, 10, 4501500]


def test_the_loop_dispatches_on_the_opcode() -> None:
    executable = sum_down()

    opcodes = [Opcode(executable.code[offset]).name for offset in executable.offsets]

    assert opcodes == ["IF", "CALL", "CALL", "CALL", "RET", "RET"]


# --- the compiler ---------------------------------------------------------------------------


def test_operands_become_leaves() -> None:
    """A-normal form; of a script it comes with the reading."""
    module = read("""
@R.function
def main(x: R.Tensor(("n",), "float32")):
    y = R.exp(R.negative(R.exp(x)))
    return y
""")

    assert normalize(module) is module
    assert [line.strip() for line in module.script().splitlines()[5:-1]] == [
        'gv: R.Tensor((n,), "float32") = R.exp(x)',
        'gv1: R.Tensor((n,), "float32") = R.negative(gv)',
        'y: R.Tensor((n,), "float32") = R.exp(gv1)',
    ]


LOCAL = """
@R.function
def main(x: R.Tensor(("n",), "float32"), s: R.Tensor((), "float32")):
    n = T.int64()

    @R.function
    def scaled(y: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        z = R.multiply(y, s)
        return z

    gv = scaled(x)
    return gv
"""


def test_local_functions_are_lifted_and_run() -> None:
    lifted = lambda_lift(read(LOCAL))
    x, s = floats(5), np.array(3, np.float32)

    result = VirtualMachine(rx.build(lifted))["main"](x, s)

    assert sorted(lifted.functions) == ["main", "main_scaled"]
    np.testing.assert_array_equal(result, x * 3)


def test_private_functions_are_inlined() -> None:
    module = read("""
@I.ir_module
class Module:
    @R.function(private=True)
    def twice(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        y = R.add(x, x)
        return y

    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        y = Module.twice(x)
        return y
""")

    inlined = inline_private_functions(module)

    assert list(inlined.functions) == ["main"]
    np.testing.assert_array_equal(
        VirtualMachine(rx.build(inlined))["main"](floats(3)), floats(3) * 2
    )


def test_equal_constants_are_in_the_pool_once() -> None:
    weights = floats(4)
    ib = ExecBuilder()
    with ib.function("main"):
        ib.emit_call("f", [weights, (2, 3), weights, "text", (2, 3)], dst=ib.r(0))
        ib.emit_ret(ib.r(0))

    assert [type(c) for c in ib.get().constants] == [np.ndarray, tuple, str]


def test_a_call_in_the_last_place_takes_no_frame() -> None:
    ib = ExecBuilder()
    with ib.function("main", num_inputs=1):
        zero = ib.label()
        ib.emit_if(ib.r(0), zero)
        ib.emit_call("sub", [ib.r(0), 1], dst=ib.r(1))
        ib.emit_call("main", [ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
        ib.place(zero)
        ib.emit_ret(ib.r(0))

    vm = VirtualMachine(ib.get(), {"sub": operator.sub}, max_depth=2)

    assert vm["main"](1000) == 0


def test_registers_are_taken_again_after_the_last_use() -> None:
    chain = "".join(f'    y = R.call_packed("f", {v})\n' for v in "xyyyyyyy")
    module = read(f"@R.func\ndef main(x: R.Object):\n{chain}    return y\n")

    executable = rx.build(module)

    assert executable["main"].num_registers <= 3


# --- files ----------------------------------------------------------------------------------

MODEL = """
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        lv = R.matmul(x, R.const([[1, 2], [3, 4], [5, 6], [7, 8]], "float32"))
        gv = R.nn.relu(lv)
        R.output(gv)
    return gv
"""


def test_a_file_has_globals_constants_names_of_kernels_and_code(tmp_path: Path) -> None:
    """The four sections; kernels are in the same file, not in a library beside it."""
    executable = rx.build(rx.optimize(read(MODEL)))

    executable.save(tmp_path / "model.rxe")
    loaded = rx.load(tmp_path / "model.rxe")

    assert set(SECTIONS) >= {"functions", "constants", "tensors", "callees", "code", "kernels"}
    assert loaded == executable
    assert [f.name for f in loaded.functions] == ["main"]
    assert any(isinstance(c, np.ndarray) for c in loaded.constants)
    assert loaded.kernel_names < set(loaded.callees)
    assert [p.name for p in tmp_path.iterdir()] == ["model.rxe"]


@pytest.mark.parametrize("size", [0, 1, 5])
def test_what_is_loaded_runs_as_what_was_saved(tmp_path: Path, size: int) -> None:
    x = floats(size, 4)
    rx.build(rx.optimize(read(MODEL))).save(tmp_path / "model.rxe")

    result = VirtualMachine(rx.load(tmp_path / "model.rxe"))["main"](x)

    weights = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
    np.testing.assert_allclose(result, np.maximum(x @ weights, 0), rtol=1e-5, atol=1e-5)


def test_one_executable_serves_every_shape() -> None:
    vm = VirtualMachine(rx.build(read(MODEL)))

    assert [vm["main"](floats(size, 4)).shape for size in (0, 1, 9)] == [(0, 2), (1, 2), (9, 2)]
