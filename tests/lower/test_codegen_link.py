"""Kernels as callables: what they take, what they share, how long they live."""

import ctypes
import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import ArgumentError, ExecutableError
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.jit import address_of, compile_kernels, link, linking
from relax_egraph.lower.jit.compiled import CompiledKernels
from relax_egraph.lower.jit.entry import MOST_ARGUMENTS, layout_is_known
from relax_egraph.lower.jit.kernel_sets import compiled_kernels, kernel_set
from relax_egraph.lower.jit.object_cache import ObjectCache
from relax_egraph.tir.expr import Buffer, Imm, Intrinsic, TirVar
from relax_egraph.tir.stmt import PrimFunc, Store, seq
from tests.support.kernels import buffer, loop, n, sample


def doubled(name: str = "i") -> PrimFunc:
    i, x, out = TirVar(name), buffer("x", "float32", n), buffer("out", "float32", n)
    return PrimFunc((x, out), loop(i, n, Store(out, (i,), x[i] * 2.0)))


def exponential() -> PrimFunc:
    i, x, out = TirVar("i"), buffer("x", "float32", n), buffer("out", "float32", n)
    return PrimFunc((x, out), loop(i, n, Store(out, (i,), Intrinsic("exp", (x[i],)))))


def read_only(array: Any) -> Any:
    array.setflags(write=False)
    return array


GOOD = np.zeros(4, np.float32)
NEEDS = (
    "double(float32[], writeable float32[], int) needs these arguments, "
    "arrays C-contiguous and aligned"
)
WRONG: dict[str, tuple[Any, ...]] = {
    "too few": (GOOD, GOOD),
    "too many": (GOOD, GOOD, 4, 4),
    "a list": ([0.0], GOOD, 1),
    "another dtype": (GOOD, np.zeros(4), 4),
    "strided": (np.zeros(8, np.float32)[::2], GOOD, 4),
    "foreign bytes": (np.zeros(4, ">f4"), GOOD, 4),
    "read-only": (GOOD, read_only(np.zeros(4, np.float32)), 4),
    "unaligned": (np.zeros(17, np.uint8)[1:].view(np.float32), GOOD, 4),
    "no array": (None, GOOD, 4),
}


@pytest.fixture(params=["built-in", "ctypes"])
def double(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> linking.Kernel:
    if request.param == "ctypes":
        monkeypatch.setattr(linking, "layout_is_known", lambda: False)
    return link(compile_kernels({"double": doubled()}))["double"]


def test_the_layout_of_arrays_is_known_here() -> None:
    assert layout_is_known()


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_argument_is_refused(case: str, double: linking.Kernel) -> None:
    with pytest.raises(ArgumentError) as caught:
        double(*WRONG[case])

    assert str(caught.value) == NEEDS


@pytest.mark.parametrize("size", ["4", 4.0, None, 1 << 63])
def test_a_size_that_is_no_integer_is_refused(size: object, double: linking.Kernel) -> None:
    with pytest.raises(ArgumentError) as caught:
        double(GOOD, GOOD, size)

    assert str(caught.value) == NEEDS


def test_integers_of_numpy_are_integers(double: linking.Kernel) -> None:
    x, out = sample((9,), "float32"), np.zeros(9, np.float32)

    result = double(x, out, np.int32(9))

    assert result is None
    np.testing.assert_array_equal(out, x * 2)


def test_inputs_may_be_read_only(double: linking.Kernel) -> None:
    x, out = read_only(np.ones(3, np.float32)), np.zeros(3, np.float32)

    double(x, out, 3)

    assert out.tolist() == [2, 2, 2]


def test_calls_keep_the_counts_of_references(double: linking.Kernel) -> None:
    x, out = np.ones(3, np.float32), np.zeros(3, np.float32)
    before = [sys.getrefcount(o) for o in (x, out, None)]

    for _ in range(1000):
        double(x, out, 3)

    after = [sys.getrefcount(o) for o in (x, out, None)]
    assert all(abs(a - b) < 100 for a, b in zip(after, before, strict=True))


@pytest.mark.parametrize("count", [1, 5, 6, 7, MOST_ARGUMENTS - 1, MOST_ARGUMENTS, 40])
def test_kernels_may_have_many_arguments(count: int) -> None:
    inputs = [Buffer(f"x{k}", (1,), "int64") for k in range(count - 1)]
    out, zero = Buffer("out", (1,), "int64"), Imm(0, "int64")
    body = seq(Store(out, (zero,), zero), *(Store(out, (zero,), out[0] * 3 + x[0]) for x in inputs))
    kernel = link(compile_kernels({"f": PrimFunc((*inputs, out), body)}))["f"]
    given, result = [np.array([k % 5]) for k in range(count - 1)], np.zeros(1, np.int64)

    kernel(*given, result)

    expected = 0
    for value in given:
        expected = expected * 3 + int(value[0])
    assert result[0] == (expected + 2**63) % 2**64 - 2**63


def test_equal_functions_are_compiled_once() -> None:
    compiled = compile_kernels({"a": doubled("i"), "b": doubled("j"), "c": exponential()})

    symbols = [compiled.kernels[name].symbol for name in "abc"]

    assert symbols[0] == symbols[1] != symbols[2]
    assert set(compiled.objects) == set(symbols)


def test_a_kernel_outlives_what_it_was_linked_from() -> None:
    kernels = link(compile_kernels({"a": doubled(), "b": exponential()}))
    kernel = kernels["a"]
    x, out = np.ones(5, np.float32), np.zeros(5, np.float32)
    del kernels
    gc.collect()
    others = [link(compile_kernels({"b": exponential()})) for _ in range(3)]

    kernel(x, out, 5)

    assert out.tolist() == [2] * 5
    assert len(others) == 3


def test_the_address_of_a_kernel_is_that_of_its_code(double: linking.Kernel) -> None:
    x, out = np.ones(3, np.float32), np.zeros(3, np.float32)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)

    call(address_of(double))(None, x.ctypes.data, out.ctypes.data, 3)

    assert out.tolist() == [2, 2, 2]


def test_what_is_no_kernel_has_no_address() -> None:
    with pytest.raises(TypeError, match=r"^<built-in function print> is not a linked kernel$"):
        address_of(print)


def test_compiled_kernels_survive_being_written() -> None:
    compiled = compile_kernels({"a": doubled(), "b": exponential()})

    read = compiled_kernels(kernel_set(compiled))

    assert read == compiled
    x, out = np.ones(3, np.float32), np.zeros(3, np.float32)
    link(read)["a"](x, out, 3)
    assert out.tolist() == [2, 2, 2]


def test_code_for_another_processor_is_not_loaded() -> None:
    compiled = compile_kernels({"a": doubled()})
    foreign = CompiledKernels(
        Target("alien", frozenset({"telepathy"}), 128), compiled.objects, compiled.kernels
    )

    with pytest.raises(ExecutableError, match=r"^kernels compiled for alien use telepathy: this"):
        link(foreign)


def test_no_kernels_are_linked_to_none() -> None:
    assert link(compile_kernels({})) == {}


def test_the_process_ends_well_with_kernels_alive(tmp_path: Path) -> None:
    code = (
        "import numpy as np\n"
        "from tests.lower.test_codegen_link import *\n"
        "kernels = link(compile_kernels({'a': doubled(), 'b': exponential()}))\n"
        "cycle = [kernels]; cycle.append(cycle)\n"
        "kernels['a'](GOOD, GOOD, 4)\n"
    )
    root = Path(__file__).parents[2]

    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={"PYTHONPATH": str(root), "RELAX_EGRAPH_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
    )

    assert (result.returncode, result.stderr) == (0, "")


def test_a_cache_is_used_if_it_is_given(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)

    first = compile_kernels({"a": doubled()}, cache=cache)
    second = compile_kernels({"a": doubled()}, cache=cache)

    assert first == second
    assert len(list(tmp_path.iterdir())) == 1
