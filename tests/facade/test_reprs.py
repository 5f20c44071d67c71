"""What a user prints: ``repr`` is one line, whatever the size; ``print`` says what there is."""

import numpy as np

import relax_egraph as rx
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.ir.module import IRModule
from relax_egraph.vm import ExecBuilder

SMALL = rx.parse("""
@R.function
def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        lv0 = R.sum(R.exp(x), axis=[1])
        lv1 = R.sum(y, axis=[1])
        gv0 = R.matmul(lv0, lv1)
        R.output(gv0)
    return gv0
""")


def large() -> IRModule:
    """A module of twenty functions of twenty parameters."""
    params = ", ".join(f'x{k}: R.Tensor(("n",), "float32")' for k in range(20))
    return rx.parse(
        "".join(f"@R.function\ndef f{k}({params}):\n    return x0\n\n\n" for k in range(20))
    )


def test_a_module() -> None:
    assert repr(SMALL) == "<IRModule: main(x, y)>"
    assert str(SMALL) == SMALL.script()
    assert repr(IRModule()) == "<IRModule: no function>"
    assert repr(rx.lower_module(SMALL)) == "<IRModule: main(x, y) and 3 loop functions>"


def test_a_large_module_is_one_line() -> None:
    module = large()
    exe = rx.build(module)

    for what in (module, exe, rx.VirtualMachine(exe)):
        assert len(repr(what).splitlines()) == 1
        assert len(repr(what)) < 250
    assert repr(module).startswith("<IRModule: f0(x0, x1, x2, x3, … 16 more), f1(")
    assert repr(module).endswith(", … 16 more>")


def test_an_executable() -> None:
    ib = ExecBuilder()
    with ib.function("main", 1, ("x",)):
        ib.emit_call("helper", [ib.r(0), ib.convert_constant(np.ones(3))], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    with ib.function("helper", 2, ("a", "b"), private=True):
        ib.emit_call("vm.builtin.make_tuple", [ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    exe = ib.get()

    assert repr(exe) == "<Executable: main(x); 4 instructions, 0 kernels>"
    assert str(exe) == exe.stats()


def test_compiled_kernels() -> None:
    exe = rx.build(SMALL, targets=["x86-64-v3"])

    (kernels,) = exe.kernels
    count = len(exe.kernel_names)
    assert repr(exe).endswith(f"instructions, {count} kernels for {kernels.target}>")
    assert repr(kernels) == (
        f"<KernelSet: {count} kernels for {kernels.target}, {kernels.size:,} bytes>"
    )


def test_a_memory_plan() -> None:
    plan = rx.plan_memory(SMALL)["main"]

    known = plan.at({"n": 100})
    assert repr(known) == "<MemoryPlan: 4 tensors in 2 storages, 2,004 bytes, 0 of weights>"
    assert (
        str(known)
        == """\
MemoryPlan: 4 tensors in 2 storages, 2,004 bytes, 0 of weights
  lv: 1600 bytes at 0 of storage 1, steps 0 to 1
  lv0: 400 bytes at 1600 of storage 1, steps 1 to 3
  lv1: 400 bytes at 0 of storage 1, steps 2 to 3
  gv0: 4 bytes at 0 of storage 0, steps 3 to 4"""
    )


def test_the_rule_book_and_rules_of_a_user() -> None:
    text = '(rewrite (R.exp (R.log x)) x :name "exp-of-log")'
    book = RuleBook.default([text], families=["fma", "masks"])

    assert repr(book).endswith(" in 2 families, 1 of the user>")
    head, *lines = str(book).splitlines()
    assert head == repr(book)[1:-1]
    assert "  fma (" in str(book)
    assert lines[-1] == "  rules (1): exp-of-log"
    assert repr(rx.rules.load(text)) == "<Rules: a text of 48 characters>"
