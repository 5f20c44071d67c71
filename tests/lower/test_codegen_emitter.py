"""The writer of LLVM functions: what it writes computes what it says."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relax_egraph.lower.emit import vector
from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import (
    F32,
    F64,
    I1,
    I8,
    I32,
    I64,
    PTR,
    Module,
    Type,
    literal,
)
from relax_egraph.lower.emit.target import Target, host, portable
from relax_egraph.lower.jit import compile_kernels, link
from relax_egraph.lower.jit.machine_code import assembly
from relax_egraph.lower.jit.processors import processor
from relax_egraph.tir.expr import Imm
from relax_egraph.tir.stmt import PrimFunc, TensorIntrinsic
from tests.support.kernels import TARGETS, Array, buffer, sample

WIDE = pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))


def execute(
    body: Callable[[Function, Value, Value, Value], None],
    given: Array,
    result: Array,
    number: int = 0,
    target: Target | None = None,
) -> None:
    """Run the function ``body(f, x, out, number)`` on arrays."""

    def define(module: Module, _: Target) -> None:
        f = Function(module, "written", (PTR, PTR, I64))
        x, out, n = f.args
        body(f, x, out, n)
        f.finish()

    x = buffer("x", str(given.dtype), given.size)
    out = buffer("out", str(result.dtype), result.size)
    zero = Imm(0, "int64")
    call = TensorIntrinsic("written", ((x, (zero,)), (out, (zero,))), (Imm(number, "int64"),))
    function = PrimFunc((x, out), call)
    kernel = link(compile_kernels({"f": function}, target, {"written": define}))["f"]
    kernel(given, result)


def test_a_loop_carries_values_from_turn_to_turn() -> None:
    def fibonacci(f: Function, x: Value, out: Value, n: Value) -> None:
        with f.loop(0, n, carry=(f.const(I64, 0), f.const(I64, 1))) as turns:
            a, b = turns.values
            turns.carry(b, a + b)
        f.store(turns.results[0], out)

    found: list[int] = []
    for number in (0, 1, 10):
        result = np.zeros(1, np.int64)
        execute(fibonacci, np.zeros(1, np.int64), result, number)
        found.append(int(result[0]))

    assert found == [0, 1, 55]


def test_a_loop_that_carries_too_little_is_refused() -> None:
    f = Function(Module(host()), "f", (I64,))

    with (
        pytest.raises(ValueError, match=r"^loop carries 0 values, needs 1$"),
        f.loop(0, f.args[0], carry=(f.const(I64, 0),)),
    ):
        pass


def test_a_loop_without_end_is_left_from_within() -> None:
    """Multiplies by 3 until 100 is passed, or until a number ends in 9."""

    def powers(f: Function, x: Value, out: Value, n: Value) -> None:
        f.store(n, out)
        with f.forever() as leave:
            number = f.load(out, I64)
            with f.when(f.compare("==", f.binary("srem", number, 10), 9)):
                leave(f.compare(">", number, 0))
            leave(f.compare(">", number, 100))
            f.store(number * 3, out)

    found: list[int] = []
    for number in (101, 2, 1, 13):
        result = np.zeros(1, np.int64)
        execute(powers, np.zeros(1, np.int64), result, number)
        found.append(int(result[0]))

    assert found == [101, 162, 9, 39]


def test_a_name_is_defined_once_in_a_module() -> None:
    module = Module(host())
    Function(module, "f", ()).finish()

    with pytest.raises(ValueError, match=r"^function 'f' is defined twice in one module$"):
        Function(module, "f", ()).finish()


@pytest.mark.parametrize("number", [-1, 0, 1])
def test_one_of_two_arms_runs(number: int) -> None:
    def sign(f: Function, x: Value, out: Value, n: Value) -> None:
        with f.either(f.compare("<", n, 0)) as (then, otherwise):
            with then:
                f.store(f.const(I64, -1), out)
            with otherwise, f.when(f.compare(">", n, 0)):
                f.store(f.const(I64, 1), out)

    result = np.zeros(1, np.int64)

    execute(sign, result, result, number)

    assert result[0] == number


@WIDE
@pytest.mark.parametrize("count", [-(2**40), -1, 0, 1, 3, 4, 5, 2**40])
def test_a_mask_has_as_many_lanes_on_as_there_are(count: int, target: Target) -> None:
    def mark(f: Function, x: Value, out: Value, n: Value) -> None:
        mask = vector.first_lanes(f, n, 4)
        vector.masked_store(f.const(F32.of(4), 1.0), out, mask)

    result = np.zeros(8, np.float32)

    execute(mark, result, result, count, target)

    on = max(0, min(4, count))
    assert result.tolist() == [1.0] * on + [0.0] * (8 - on)


@WIDE
def test_masked_lanes_are_not_read(target: Target) -> None:
    def copy(f: Function, x: Value, out: Value, n: Value) -> None:
        mask = vector.first_lanes(f, n, 4)
        f.store(vector.masked_load(x, F64.of(4), mask, default=7.0), out)

    result = np.zeros(4)

    execute(copy, np.array([1.0, 2.0, 3.0, 4.0]), result, 2, target)

    assert result.tolist() == [1, 2, 7, 7]


@WIDE
@pytest.mark.parametrize(
    ("kind", "expected"), [("+", np.sum), ("*", np.prod), ("min", np.min), ("max", np.max)]
)
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_lanes_are_combined(kind: str, expected: Any, dtype: str, target: Target) -> None:
    types: dict[str, Type] = {"float32": F32, "int32": I32, "uint8": I8}

    def combine(f: Function, x: Value, out: Value, n: Value) -> None:
        lanes = f.load(x, types[dtype].of(8))
        f.store(vector.reduce(kind, lanes, signed=dtype != "uint8"), out)

    given, result = sample((8,), dtype), np.zeros(1, dtype)

    execute(combine, given, result, target=target)

    with np.errstate(over="ignore"):
        exact = expected(given, dtype=dtype) if kind in "+*" else expected(given)
    np.testing.assert_allclose(result[0], exact, rtol=1e-5)


def test_lanes_are_moved() -> None:
    def reverse(f: Function, x: Value, out: Value, n: Value) -> None:
        lanes = f.load(x, F32.of(4))
        lanes = vector.shuffle(lanes, lanes, [3, 2, 1, 4])
        f.store(vector.with_lane(lanes, 1, vector.lane(lanes, 0) * 10.0), out)

    result = np.zeros(4, np.float32)

    execute(reverse, np.array([1, 2, 3, 4], np.float32), result)

    assert result.tolist() == [4, 40, 2, 1]


def test_a_scalar_meets_a_vector_in_every_lane() -> None:
    def scale(f: Function, x: Value, out: Value, n: Value) -> None:
        factor = f.convert("sitofp", n, F32)
        f.store(1.0 + f.load(x, F32.of(4)) * factor, out)

    result = np.zeros(4, np.float32)

    execute(scale, np.array([1, 2, 3, 4], np.float32), result, 3)

    assert result.tolist() == [4, 7, 10, 13]


@pytest.mark.parametrize(
    ("type", "number", "text"),
    [
        (I8, 255, "-1"),
        (I64, 2**63, str(-(2**63))),
        (I1, 1, "true"),
        (F32, 0.1, "0x3FB99999A0000000"),
        (F32, 1e300, "0x7FF0000000000000"),
        (F64, -0.0, "0x8000000000000000"),
        (I32.of(4), 7, "splat (i32 7)"),
        (PTR, 0, "null"),
    ],
)
def test_literals_are_what_the_type_holds(type: Type, number: float, text: str) -> None:
    assert literal(type, number) == text


def test_internal_functions_are_not_seen_from_outside() -> None:
    module = Module(host())
    f = Function(module, "hidden", (PTR,), internal=True)
    f.prefetch(f.args[0])
    f.finish()

    assert "define internal void @hidden(ptr %a0)" in str(module)
    assert ".globl" not in assembly(str(module), host())


def test_the_width_of_vectors_follows_from_the_features() -> None:
    avx512 = portable("avx512f", "avx512vl", "avx512bw", "avx512dq", "avx2", "fma")

    widths = [t.vector_bits for t in (portable(), portable("avx2", "fma"), avx512)]

    assert widths == [128, 256, 512]
    assert avx512.lanes(64) == 8
    assert portable("fma", "avx2").feature_text == "+avx2,+fma"
    assert not portable("avx2").has_fma


def test_a_processor_has_its_features_whichever_machine_compiles_for_it() -> None:
    oldest, v3 = processor("x86_64").features, processor("x86_64:x86-64-v3").features

    assert oldest <= {"64bit", "cmov", "cx16", "cx8", "fxsr", "mmx", "sahf", "sse", "sse2"}
    assert {"avx2", "fma", "bmi2", "f16c"} <= v3 < processor("x86_64:x86-64-v4").features
    assert {"neon", "dotprod"} <= processor("aarch64:neoverse-n1").features
    assert processor("aarch64").features == {"fp-armv8", "neon"}
