"""Each instruction of the Relay machine, as bytecode of this one, in both engines.

`vm/README.md` has the table.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import RunError
from relax_egraph.vm import ExecBuilder, VirtualMachine
from relax_egraph.vm.machine import Engine
from tests.support.native import with_kernels

ENGINES: Sequence[Engine] = ("interpreter", "auto")
X = np.arange(4, dtype=np.float32)


def ret(ib: ExecBuilder) -> None:
    ib.emit_ret(ib.r(0))


def invoke_packed(ib: ExecBuilder) -> None:
    alloc_tensor(ib, returned=False)
    ib.emit_call("vm.builtin.shape_of", [ib.r(0)], dst=ib.r(3))
    ib.emit_call("vm.builtin.alloc_shape_heap", [1], dst=ib.r(4))
    ib.emit_call("vm.builtin.match_shape", [ib.r(0), ib.r(4), "main", "x", "n -> @0"])
    ib.emit_call("vm.builtin.load_prim", [ib.r(4), 0], dst=ib.r(5))
    ib.emit_call("add", [ib.r(0), ib.r(0), ib.r(2), ib.r(5)])
    ib.emit_ret(ib.r(2))


def alloc_tensor(ib: ExecBuilder, *, returned: bool = True) -> None:
    ib.emit_call("vm.builtin.check_tensor_info", [ib.r(0), "main", "x", 1, "float32"])
    ib.emit_call("vm.builtin.alloc_storage", [ib.vm_state(), 16], dst=ib.r(1))
    ib.emit_call("vm.builtin.alloc_tensor", [ib.r(1), 0, (4,), "float32"], dst=ib.r(2))
    if returned:
        ib.emit_call("vm.builtin.shape_of", [ib.r(2)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))


def alloc_tensor_reg(ib: ExecBuilder) -> None:
    ib.emit_call("vm.builtin.check_tensor_info", [ib.r(0), "main", "x", 1, "float32"])
    ib.emit_call("vm.builtin.shape_of", [ib.r(0)], dst=ib.r(1))
    ib.emit_call("vm.builtin.size_of", [ib.r(1), "int8"], dst=ib.r(2))
    ib.emit_call("vm.builtin.alloc_storage", [ib.vm_state(), ib.r(2)], dst=ib.r(3))
    ib.emit_call("vm.builtin.alloc_tensor", [ib.r(3), 0, ib.r(1), "int8"], dst=ib.r(4))
    ib.emit_call("vm.builtin.shape_of", [ib.r(4)], dst=ib.r(5))
    ib.emit_ret(ib.r(5))


def alloc_adt(ib: ExecBuilder) -> None:
    ib.emit_call("vm.builtin.make_tagged", [3, ib.r(0), 7], dst=ib.r(1))
    ib.emit_call("vm.builtin.get_field", [ib.r(1), 1], dst=ib.r(2))
    ib.emit_ret(ib.r(2))


def get_field(ib: ExecBuilder) -> None:
    ib.emit_call("vm.builtin.make_tuple", [7, ib.r(0)], dst=ib.r(1))
    ib.emit_call("vm.builtin.tuple_getitem", [ib.r(1), 1], dst=ib.r(2))
    ib.emit_ret(ib.r(2))


def get_tag(ib: ExecBuilder) -> None:
    ib.emit_call("vm.builtin.make_tagged", [3, ib.r(0)], dst=ib.r(1))
    ib.emit_call("vm.builtin.get_tag", [ib.r(1)], dst=ib.r(2))
    ib.emit_ret(ib.r(2))


def alloc_closure(ib: ExecBuilder) -> None:
    ib.emit_call("vm.builtin.make_closure", [ib.f("second"), ib.r(0)], dst=ib.r(1))
    ib.emit_call("vm.builtin.invoke_closure", [ib.r(1), 5], dst=ib.r(2))
    ib.emit_ret(ib.r(2))


def invoke(ib: ExecBuilder) -> None:
    ib.emit_call("second", [5, ib.r(0)], dst=ib.r(1))
    ib.emit_ret(ib.r(1))


def if_(ib: ExecBuilder) -> None:
    ib.emit_call("vm.builtin.check_tensor_info", [ib.r(0), "main", "x", 1, "float32"])
    ib.emit_call("vm.builtin.alloc_shape_heap", [1], dst=ib.r(1))
    ib.emit_call("vm.builtin.match_shape", [ib.r(0), ib.r(1), "main", "x", "n -> @0"])
    ib.emit_call("vm.builtin.load_prim", [ib.r(1), 0], dst=ib.r(2))
    ib.emit_call("vm.builtin.prim_less_equal", [ib.r(2), 3], dst=ib.r(3))
    ib.emit_call("vm.builtin.read_if_cond", [ib.r(3)], dst=ib.r(3))
    ib.emit_if(ib.r(3), 3)
    ib.emit_call("vm.builtin.copy", [1], dst=ib.r(4))
    ib.emit_goto(2)
    ib.emit_call("vm.builtin.copy", [2], dst=ib.r(4))
    ib.emit_ret(ib.r(4))


def goto(ib: ExecBuilder) -> None:
    ib.emit_goto(2)
    ib.emit_ret(0)
    ib.emit_ret(ib.r(0))


def load_const(ib: ExecBuilder) -> None:
    ib.emit_call("vm.builtin.copy", [X], dst=ib.r(1))
    ib.emit_ret(ib.r(1))


def load_consti(ib: ExecBuilder) -> None:
    ib.emit_call("vm.builtin.copy", [ib.imm(7)], dst=ib.r(1))
    ib.emit_ret(ib.r(1))


def move(ib: ExecBuilder) -> None:
    ib.emit_call("vm.builtin.copy", [ib.r(0)], dst=ib.r(1))
    ib.emit_ret(ib.r(1))


def reshape_tensor(ib: ExecBuilder) -> None:
    ib.emit_call("vm.builtin.check_tensor_info", [ib.r(0), "main", "x", 1, "float32"])
    ib.emit_call("vm.builtin.reshape", [ib.r(0), (2, 2)], dst=ib.r(1))
    ib.emit_ret(ib.r(1))


def shape_of(ib: ExecBuilder) -> None:
    ib.emit_call("vm.builtin.check_tensor_info", [ib.r(0), "main", "x", 1, "float32"])
    ib.emit_call("vm.builtin.shape_of", [ib.r(0)], dst=ib.r(1))
    ib.emit_ret(ib.r(1))


def kill_register(ib: ExecBuilder) -> None:
    ib.emit_call("vm.builtin.make_tuple", [ib.r(0)], dst=ib.r(1))
    ib.emit_call("vm.builtin.kill", [ib.r(1)], dst=ib.r(1))
    ib.emit_ret(ib.r(1))


PROGRAMS: Mapping[str, tuple[Callable[[ExecBuilder], None], Any]] = {
    "Ret": (ret, X),
    "InvokePacked": (invoke_packed, X + X),
    "AllocTensor, AllocStorage": (alloc_tensor, (4,)),
    "AllocTensorReg": (alloc_tensor_reg, (4,)),
    "AllocADT, GetField": (alloc_adt, 7),
    "GetField of a tuple": (get_field, X),
    "GetTag": (get_tag, 3),
    "AllocClosure, InvokeClosure": (alloc_closure, X),
    "Invoke": (invoke, X),
    "If": (if_, 2),
    "Goto": (goto, X),
    "LoadConst": (load_const, X),
    "LoadConsti": (load_consti, 7),
    "Move": (move, X),
    "ReshapeTensor": (reshape_tensor, X.reshape(2, 2)),
    "ShapeOf": (shape_of, (4,)),
    "KillRegister": (kill_register, None),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("instruction", PROGRAMS)
def test_the_instruction_has_a_counterpart(instruction: str, engine: Engine) -> None:
    emit, expected = PROGRAMS[instruction]

    result = machine(emit, engine)["main"](X)

    assert type(result) is type(expected)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_fatal_fails(engine: Engine) -> None:
    def fatal(ib: ExecBuilder) -> None:
        ib.emit_call("vm.builtin.fatal", ["no case fits"])
        ib.emit_ret(0)

    with pytest.raises(RunError) as error:
        machine(fatal, engine)["main"](X)

    assert str(error.value) == "no case fits"


def machine(emit: Callable[[ExecBuilder], None], engine: Engine) -> VirtualMachine:
    """A machine whose ``main(x)`` is what `emit` emits; ``second(a, b)`` is `b`."""
    ib = ExecBuilder()
    with ib.function("second", 2, allow_unused=True):
        ib.emit_ret(ib.r(1))
    with ib.function("main", 1, allow_unused=True):
        emit(ib)
    return VirtualMachine(with_kernels(ib), engine=engine)
