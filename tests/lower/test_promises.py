"""What extraction pays for is what is built: kernels have the schedules that they are priced as."""

from dataclasses import replace

import numpy as np
import pytest

import relax_egraph as rx
from bench.networks import networks
from bench.workloads import workloads
from relax_egraph.errors import ExecutableError
from relax_egraph.ir.kernel import ANCHOR
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir import te
from relax_egraph.vm import Executable
from relax_egraph.vm.binary import from_bytes
from relax_egraph.vm.promises import KEY, KernelPromise
from tests.support.scheduled import M, N

MODELS = (
    "gelu(x·w+b)+x (64, 4096)",
    "MLP 784-128-10, n = 64",
    "attention 12×64, s = 128",
    "conv 3×3, 64×56²",
    "conv 3×3, 512×7²",
    "encoder, 1 layer, s = 128",
    "ResNet basic block, 64×56²",
    "ResNet-50, n = 1",
    "LLaMA decode, cache 64",
    "LLaMA decode in place, cache 64",
    "LLaMA prefill, s = 128",
)


def built(module: rx.IRModule) -> Executable:
    return rx.build(rx.optimize(module))


@pytest.mark.parametrize("name", MODELS)
def test_every_kernel_of_a_model_is_as_promised(name: str) -> None:
    (module, *_) = {**workloads(), **networks()}[name].make().modules

    promises = built(module).promises

    assert promises
    assert [n for n, p in promises.items() if not p.is_kept] == []


FUSED = """
@I.ir_module
class Module:
    @R.function(private=True)
    def fused_exp_negative(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        R.func_attr({"primitive": True, "anchor": "ANCHOR", "seconds": 2.5e-06})
        with R.dataflow():
            lv = R.exp(x)
            gv = R.negative(lv)
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        cls = Module
        with R.dataflow():
            gv = cls.fused_exp_negative(x)
            R.output(gv)
        return gv
"""


def test_a_broken_promise_is_said() -> None:
    executable = rx.build(rx.parse(FUSED.replace("ANCHOR", "conv")))

    assert executable.promises == {
        "fused_exp_negative": KernelPromise("conv", 2.5e-6, "elementwise")
    }
    last = executable.stats().splitlines()[-1]
    assert (
        last == "  kernels that are not as promised (1): fused_exp_negative (conv, is elementwise)"
    )


def test_a_promise_that_is_kept_is_silent() -> None:
    executable = rx.build(rx.parse(FUSED.replace("ANCHOR", "elementwise")))

    assert all(p.is_kept for p in executable.promises.values())
    assert "promised" not in executable.stats()


def test_the_promised_schedule_comes_before_others_that_fit() -> None:
    x = te.placeholder((N, M), name="x")
    turned = te.create_prim_func(x, te.compute((M, N), lambda i, j: x[j, i], "out"))
    promised = replace(turned, attrs={ANCHOR: "elementwise"})

    assert schedule(turned).attrs["schedule"] == "movement"
    assert schedule(promised).attrs["schedule"] == "elementwise"


def test_promises_are_saved() -> None:
    executable = rx.build(rx.parse(FUSED.replace("ANCHOR", "rows")))

    assert from_bytes(executable.to_bytes()).promises == executable.promises


@pytest.mark.parametrize("text", ["[]", "{", '{"f": 1}', '{"f": ["rows", "fast", "rows"]}'])
def test_a_text_that_holds_no_promises_is_refused(text: str) -> None:
    executable = replace(rx.build(rx.parse(FUSED)), metadata={KEY: text})

    with pytest.raises(ExecutableError, match=r"^metadata promises: "):
        print(executable.promises)


def test_a_profile_has_the_price_beside_the_time() -> None:
    executable = rx.build(rx.parse(FUSED.replace("ANCHOR", "elementwise")))

    report = rx.VirtualMachine(executable).profile("main", np.zeros((3, 4), np.float32))

    assert [c.price for c in report.calls if c.kind == "kernel"] == [2.5e-6]
    assert "price" in str(report)


def test_kernels_that_differ_in_their_price_are_compiled_once() -> None:
    text = FUSED.replace("ANCHOR", "elementwise")
    function = text[text.index("    @R.function(private") : text.index("    @R.function\n")]
    other = function.replace("fused_exp", "fused_exp1").replace("2.5e-06", "3e-06")
    both = text.replace(function, function + other).replace(
        "gv = cls.fused_exp_negative(x)\n",
        "lv = cls.fused_exp_negative(x)\n            gv = cls.fused_exp1_negative(lv)\n",
    )

    executable = rx.build(rx.parse(both))

    assert len(executable.promises) == 2
    assert len(set(executable.kernels[0].symbols.values())) == 1
