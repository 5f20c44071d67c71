"""What a build does with weights: each is stored once, and let go where nobody else holds it."""

import gc
import tracemalloc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph import ir
from relax_egraph.ir.expr import Var
from relax_egraph.ir.module import IRModule
from relax_egraph.vm.constants import ConstantPool
from relax_egraph.vm.deferred import Deferred, deferred, materialize

Array = np.ndarray[Any, Any]

WIDTH, DEPTH = 768, 12
WEIGHTS = DEPTH * WIDTH * WIDTH * 4


def sample(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def weights() -> list[Array]:
    return [sample(WIDTH, WIDTH, seed=k) / 30 for k in range(DEPTH)]


def products(matrices: list[Array]) -> IRModule:
    """The product ``x · w₀ · w₁ · …``."""
    bb = ir.BlockBuilder()
    x: Var = ir.Var("x", ir.tensor((4, matrices[0].shape[0]), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            for matrix in matrices:
                x = bb.emit(ir.call("matmul", x, ir.const(matrix)))
            result = bb.emit_output(x)
        bb.emit_func_output(result)
    return bb.get()


@contextmanager
def traced() -> Generator[Callable[[], int]]:
    """The most bytes that Python and numpy held since the block began, beyond those of before."""
    gc.collect()
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_build_takes_what_the_weights_do_and_hardly_more() -> None:
    module = products(weights())
    rx.build(module)  # what is done once for a process is done

    with traced() as most:
        rx.build(module)
        taken = most()

    assert WEIGHTS <= taken <= 1.2 * WEIGHTS


def test_weights_that_nobody_holds_are_let_go_one_by_one() -> None:
    rx.build(products(weights()))

    with traced() as most:
        given = [products(weights())]
        rx.build(given.pop())
        taken = most()

    assert WEIGHTS <= taken <= 1.3 * WEIGHTS


def test_weights_that_convolutions_take_otherwise_are_let_go_too() -> None:
    def convolutions() -> IRModule:
        bb = ir.BlockBuilder()
        x: Var = ir.Var("x", ir.tensor((1, 256, 7, 7), "float32"))
        with bb.function("main", [x]):
            with bb.dataflow():
                for k in range(6):
                    w = ir.const(sample(256, 256, 3, 3, seed=k) / 50)
                    x = bb.emit(ir.call("nn.conv2d", x, w, padding=(1, 1)))
                result = bb.emit_output(x)
            bb.emit_func_output(result)
        return bb.get()

    given = [convolutions()]
    executable = rx.build(given[0])
    stored = sum(c.nbytes for c in executable.constants if isinstance(c, np.ndarray))
    one = 256 * 256 * 3 * 3 * 4
    del executable

    with traced() as most:
        given = [convolutions()]
        rx.build(given.pop())
        taken = most()

    assert taken <= max(stored, 6 * one) + 4 * one


def test_weights_are_packed_of_where_they_lie() -> None:
    """Of views, whatever their strides, as of copies of them."""
    whole = sample(100, 230)
    views = [whole[:, :200].T, whole[::2, 30:].T, whole[::-2, 200::-1][:, :170].T]
    for view in views:
        x = sample(4, view.shape[0])

        result = rx.VirtualMachine(rx.build(products([view])))["main"](x)
        copied = rx.VirtualMachine(rx.build(products([view.copy()])))["main"](x)

        assert not view.flags.c_contiguous
        np.testing.assert_array_equal(result, copied)
        np.testing.assert_allclose(result, x @ view, rtol=1e-4, atol=1e-4)


def test_executables_of_the_same_module_are_the_same() -> None:
    module = products([sample(64, 100), sample(100, 30)])

    assert rx.build(module) == rx.build(module)


# --- constants that are made late ---------------------------------------------------------


def test_a_deferred_constant_is_of_a_type_and_takes_no_memory() -> None:
    constant = deferred((1 << 20, 1 << 20), np.dtype("float32"), lambda: sample(1))

    assert (constant.shape, constant.dtype.name) == ((1 << 20, 1 << 20), "float32")
    assert constant.nbytes == 1 << 42


def test_it_is_made_once_and_what_made_it_is_let_go() -> None:
    calls: list[int] = []
    source = sample(3, 2)

    def turned() -> Array:
        calls.append(1)
        return source.T

    constant = deferred((2, 3), np.dtype("float32"), turned)
    first, second = materialize(constant), materialize(constant)

    assert first is second
    assert calls == [1]
    assert constant.make is not turned
    np.testing.assert_array_equal(first, source.T)


def test_what_is_not_deferred_is_itself() -> None:
    array = sample(3)

    assert materialize(array) is array


def test_a_pool_makes_constants_when_its_values_are_wanted() -> None:
    array = sample(2, 3)
    later = deferred((3, 2), np.dtype("float32"), lambda: array.T)
    pool = ConstantPool()

    numbers = [pool.index(later), pool.index(array), pool.index(later)]
    kept, other = pool.values

    assert numbers == [0, 1, 0]
    assert isinstance(kept, np.ndarray)
    assert not isinstance(kept, Deferred)
    assert kept.flags.c_contiguous
    assert not kept.flags.writeable
    np.testing.assert_array_equal(kept, array.T)
    np.testing.assert_array_equal(other, array)
    assert pool.values[0] is kept


def test_a_constant_that_cannot_be_made_is_an_error_of_the_build() -> None:
    def refuse() -> Array:
        raise MemoryError("no room for it")

    pool = ConstantPool([deferred((1,), np.dtype("float32"), refuse)])

    with pytest.raises(MemoryError, match="no room for it"):
        _ = pool.values
