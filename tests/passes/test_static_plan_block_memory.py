"""Tensors of a function lie in one storage, as a plan says that prints."""

import numpy as np
import pytest

import relax_egraph as rx
from bench.transformer import Sizes, encoder
from relax_egraph.errors import IllFormed, RunError
from relax_egraph.ir import dims
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.well_formed import find_ill_formed
from relax_egraph.lower.memory import plan_memory
from relax_egraph.lower.pipeline import lower_module
from relax_egraph.passes.call_tir_rewrite import call_tir_rewrite
from relax_egraph.passes.static_plan_block_memory import static_plan_block_memory
from relax_egraph.passes.to_non_dataflow import to_non_dataflow
from relax_egraph.vm.machine import Engine
from tests.support.lowered import text


def rewritten(source: str) -> IRModule:
    """The module of this text, as the pass gets it."""
    return call_tir_rewrite(to_non_dataflow(lower_module(rx.parse(source))))


def planned(source: str) -> list[str]:
    """The lines of ``main`` that say where tensors lie, and the calls."""
    after = static_plan_block_memory(rewritten(source))
    assert not find_ill_formed(after)
    return [line.strip() for line in text(after).splitlines()[1:]]


PRODUCTS = """
@R.function
def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 16), "float32")):
    a = R.matmul(x, w)
    b = R.matmul(a, w)
    c = R.nn.relu(b)
    d = R.matmul(c, w)
    return d
"""


def test_tensors_lie_where_others_are_needed_no_more() -> None:
    tensor = 'R.Tensor((n, 16), "float32")'
    assert planned(PRODUCTS) == [
        "block",
        "storage: R.Object = R.memory.alloc_storage(n * 128)",
        f"a: {tensor} = R.memory.alloc_tensor(storage, 0, shape(n, 16), 'float32')",
        "_: R.Tuple() = @matmul(x, w, a, n, R.Tuple())",
        f"b: {tensor} = R.memory.alloc_tensor(storage, n * 64, shape(n, 16), 'float32')",
        "_1: R.Tuple() = @matmul(a, w, b, n, R.Tuple())",
        f"c: {tensor} = b",
        "_2: R.Tuple() = @relu(b, c, n, R.Tuple())",
        "storage1: R.Object = R.memory.alloc_storage(n * 64)",
        f"d: {tensor} = R.memory.alloc_tensor(storage1, 0, shape(n, 16), 'float32')",
        "_3: R.Tuple() = @matmul(c, w, d, n, R.Tuple())",
        "return d",
    ]


BRANCHES = """
@R.function
def main(
    x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 16), "float32"), c: R.Tensor((), "bool")
):
    a = R.matmul(x, w)
    if c:
        b = R.matmul(a, w)
        r = R.matmul(b, w)
    else:
        r = R.matmul(a, w)
    d = R.matmul(r, w)
    return d
"""


def test_what_two_branches_make_lies_in_one_place() -> None:
    lines = planned(BRANCHES)

    offsets = [line.split("(storage, ")[1].split(",")[0] for line in lines if "(storage, " in line]
    assert offsets == ["0", "n * 64", "n * 128", "n * 128"]
    assert lines[1] == "storage: R.Object = R.memory.alloc_storage(n * 192)"


@pytest.mark.parametrize("engine", ["native", "interpreter"])
@pytest.mark.parametrize("condition", [True, False])
def test_both_engines_run_planned_branches(engine: Engine, condition: bool) -> None:
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(s, np.float32) for s in ((5, 16), (16, 16)))
    machine = rx.VirtualMachine(rx.build(rx.parse(BRANCHES)), engine=engine)

    result = machine["main"](x, w, np.asarray(condition))

    expected = x @ w @ w @ w @ w if condition else x @ w @ w @ w
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_what_a_match_cast_makes_known_lies_in_a_storage_after_it() -> None:
    lines = planned("""
@R.function
def main(x: R.Tensor(("n",), "float32")):
    m = T.int64()
    a = R.cumsum(x)
    u = R.match_cast(R.unique(a), R.Tensor((m,), "float32"))
    b = R.cumsum(u)
    c = R.cumsum(b)
    return R.sum(c)
""")

    storages = [line for line in lines if "alloc_storage" in line]
    assert [line.split("alloc_storage")[1] for line in storages] == [
        "(n * 4)",
        "(m * 4)",
        "(4)",
    ]
    cast = next(k for k, line in enumerate(lines) if "match_cast(" in line)
    assert [lines.index(s) > cast for s in storages] == [False, True, True]


def test_what_leaves_the_function_has_a_storage_of_its_own() -> None:
    module = rx.parse("""
@I.ir_module
class M:
    @R.function
    def first(x: R.Tensor(("n", 16), "float32"), y: R.Tensor(("n", 16), "float32")):
        cls = M
        again = cls.first(x, y)
        return x

    @R.function(pure=False)
    def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 16), "float32")):
        n = T.int64()
        cls = M
        a = R.matmul(x, w)
        b = R.matmul(a, w)
        c: R.Tensor((n, 16), "float32") = cls.first(a, b)
        d = R.matmul(b, w)
        e = R.call_packed("my.keep", d, sinfo_args=(R.Tensor((n, 16), "float32"),))
        f = R.matmul(e, w)
        return (c, f)
""")

    plan = plan_memory(module)["main"]

    own = {t.name for t in plan.tensors if not plan.storages[t.storage].is_arena}
    assert {t.name for t in plan.tensors} == {"a", "b", "d", "f"}
    assert own == {"a", "d", "f"}


BOUNDED = """
@R.function
def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 16), "float32")):
    R.func_attr({"tir_var_upper_bound": {"n": 512}})
    a = R.matmul(x, w)
    b = R.matmul(a, w)
    d = R.matmul(b, w)
    return d
"""


def test_upper_bounds_make_the_arena_a_constant() -> None:
    lines = planned(BOUNDED)

    assert lines[1:3] == [
        '_3: R.Tuple() = R.call_packed("vm.builtin.check_upper_bound", n, 512, '
        "'main: n of parameter x', R.Tuple())",
        "storage: R.Object = R.memory.alloc_storage(65536)",
    ]
    assert rx.parse(rx.parse(BOUNDED).script()).script() == rx.parse(BOUNDED).script()


@pytest.mark.parametrize("engine", ["native", "interpreter"])
def test_what_is_beyond_an_upper_bound_is_refused(engine: Engine) -> None:
    machine = rx.VirtualMachine(rx.build(rx.optimize(rx.parse(BOUNDED))), engine=engine)
    w = np.eye(16, dtype=np.float32)

    result = machine["main"](np.ones((512, 16), np.float32), w)
    with pytest.raises(RunError) as error:
        machine["main"](np.ones((513, 16), np.float32), w)

    np.testing.assert_array_equal(result, np.ones((512, 16)))
    assert str(error.value).splitlines()[0] == ("main: n of parameter x: expected <= 512, got 513")


def test_what_is_no_upper_bound_is_refused() -> None:
    with pytest.raises(IllFormed) as error:
        plan_memory(rx.parse(BOUNDED.replace("512", '"many"')))

    assert str(error.value) == (
        "function 'main': tir_var_upper_bound is (('n', 'many'),), needs a dictionary of symbols "
        'and integers from 0 on, such as {"n": 512}'
    )


@pytest.mark.parametrize("length", [16, 128, 512])
def test_twelve_encoder_layers_take_little_more_than_what_lives_at_once(length: int) -> None:
    plan = plan_memory(rx.optimize(encoder(Sizes(12))))["main"]
    sizes = {"batch": 1, "length": length}

    needed = plan.weights + dims.evaluate(plan.largest_live, sizes)

    assert needed <= plan.peak(sizes) <= 1.1 * needed
    assert dims.text(plan.arena) == "batch * length * 1284"
