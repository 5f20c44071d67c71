"""Dataflow blocks are cut where few values cross, repeated layers alike, and mean the same."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module

import numpy as np
import pytest

import relax_egraph as rx
from bench.transformer import Sizes, encoder
from relax_egraph.egraph.encoding.encode import encode, reads_of
from relax_egraph.egraph.encoding.regions import Region, binders_of, regions_of
from relax_egraph.egraph.encoding.signature import signature
from relax_egraph.errors import RunError
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Binding, Call, DataflowBlock, DataflowVar, Function, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.passes import Sequential, fold_shapes, remove_all_unused
from tests.support.random_loop_calls import by_numpy
from tests.support.random_programs import random_program
from tests.support.random_writer import PACKED, SAMPLE
from tests.support.rounding import assert_within, bounds, leaves


def block_of(module: IRModule, name: str = "main") -> DataflowBlock:
    function = module[name]
    assert isinstance(function, Function)
    (block,) = (b for b in function.body.blocks if isinstance(b, DataflowBlock))
    return block


def cut(block: DataflowBlock, size: int) -> tuple[Region, ...]:
    outputs = [b.var for b in block.bindings if not isinstance(b.var, DataflowVar)]
    return regions_of(block.bindings, outputs, size)


def kinds(regions: Sequence[Region]) -> list[int]:
    """A number for each region, the same for those that are alike."""
    number: dict[object, int] = {}
    found = [signature(encode(r.bindings, r.outputs).view) for r in regions]
    return [number.setdefault(kind, len(number)) for kind in found]


def operators(region: Region) -> list[str]:
    return [str(b.value.op) for b in region.bindings if isinstance(b.value, Call)]


def shuffled(block: DataflowBlock, seed: int) -> DataflowBlock:
    """The bindings of `block` in another order in which they can run."""
    drawn = random.Random(seed)
    waiting = list(block.bindings)
    order: list[Binding] = []
    while waiting:
        later = {b.var for b in waiting}
        ready = [
            b for b in waiting if later.isdisjoint(r for r in reads_of(b) if isinstance(r, Var))
        ]
        order.append(drawn.choice(ready))
        waiting.remove(order[-1])
    return DataflowBlock(tuple(order))


# --- where -------------------------------------------------------------------------------


def test_a_small_block_is_one_region_as_it_stands() -> None:
    block = block_of(masked(2))

    (region,) = cut(block, 100)

    assert region.bindings == block.bindings
    assert region.outputs == (block.bindings[-1].var,)


@pytest.mark.parametrize("size", [70, 100, 150])
def test_layers_are_cut_at_their_outputs_and_are_alike(size: int) -> None:
    first, *others = cut(block_of(encoder(Sizes(12))), size)

    assert len(first.bindings) == 4  # the mask that all layers add
    assert all(len(r.outputs) == 1 for r in (first, *others))
    assert set(kinds(others)) == {0}


@pytest.mark.parametrize("computed_shapes", [False, True])
def test_shapes_that_are_computed_make_no_difference(computed_shapes: bool) -> None:
    sizes = Sizes(6, computed_shapes=computed_shapes)
    module = Sequential((fold_shapes, remove_all_unused))(encoder(sizes))

    regions = cut(block_of(module), 70)

    assert kinds(regions) == [0, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_the_source_does_not_matter(seed: int) -> None:
    block = block_of(encoder(Sizes(6)))

    regions = cut(shuffled(block, seed), 70)

    assert kinds(regions) == [0, 1, 1, 1, 1, 1, 1]


MASKED = """
@R.function
def main(x: R.Tensor((s, 8), "float32"), m: R.Tensor((s, s), "float32")):
    s = T.int64()
    with R.dataflow():
        mask = R.multiply(R.subtract(m, R.const(1.0)), R.const(1e4))
        {layers}
        out = R.nn.relu(h{count})
        R.output(out)
    return out
"""

MASKED_LAYER = """
        k{n} = R.matmul(h{n}, R.permute_dims(h{n}))
        p{n} = R.nn.softmax(R.add(k{n}, mask))
        h{next} = R.add(R.tanh(R.matmul(p{n}, h{n})), h{n})
"""


def masked(count: int) -> IRModule:
    layers = "\n".join(MASKED_LAYER.format(n=n, next=n + 1) for n in range(count))
    text = MASKED.format(layers=layers.strip(), count=count).replace("h0", "x")
    return rx.parse(text)


def test_what_all_layers_read_forbids_no_cut() -> None:
    first, *others = cut(block_of(masked(20)), 14)

    assert operators(first) == ["R.subtract", "R.multiply"]
    assert set(kinds(others[:-2])) == {0}  # the last two share what is left, and the end
    assert all(len(r.outputs) == 1 for r in others)


def test_a_value_that_is_read_from_memory_anyway_is_the_place_to_cut() -> None:
    regions = cut(block_of(masked(20)), 14)

    for region in regions[1:-1]:
        assert operators(region)[-1] == "R.add"
        assert operators(region)[-2] == "R.tanh"


def test_tuples_are_not_parted_from_their_fields() -> None:
    steps = "\n".join(
        f"        t{n} = R.split(h{n}, 2)\n        a{n} = R.exp(t{n}[0])\n"
        f"        h{n + 1} = R.concat((t{n}[1], a{n}))"
        for n in range(12)
    )
    text = f"""
@R.function
def main(h0: R.Tensor((8,), "float32")):
    with R.dataflow():
{steps}
        out = R.exp(h12)
        R.output(out)
    return out
"""
    for region in cut(block_of(rx.parse(text)), 6):
        found = operators(region)
        assert found.count("R.split") == found.count("R.concat") > 0


def test_each_region_computes_for_itself_what_costs_nothing() -> None:
    steps = "\n".join(
        f"        h{n + 1} = R.add(R.divide(R.matmul(h{n}, w), root), zero)" for n in range(12)
    )
    text = f"""
@R.function
def main(h0: R.Tensor((n, 8), "float32"), w: R.Tensor((8, 8), "float32")):
    n = T.int64()
    with R.dataflow():
        root = R.sqrt(R.const(8.0))
        zero = R.zeros(R.shape([n, 8]), dtype="float32")
{steps}
        R.output(h12)
    return h12
"""
    regions = cut(block_of(rx.parse(text)), 10)

    assert len(regions) > 2
    for region in regions:
        assert {"R.sqrt", "R.zeros"} < set(operators(region))
        assert len(region.outputs) == 1


def test_a_cast_comes_before_what_mentions_its_symbol() -> None:
    text = """
@R.function
def main(x: R.Tensor((8,), "float32")):
    m = T.int64()
    with R.dataflow():
        u = R.unique(x)
        c = R.match_cast(u, R.Tensor((m,), "float32"))
        z = R.zeros(R.shape([m]), dtype="float32")
        a = R.exp(z)
        b = R.add(a, c)
        R.output(a, b)
    return (a, b)
"""
    block = block_of(rx.parse(text))
    (cast,) = binders_of(block.bindings).values()

    order = [b for region in cut(block, 2) for b in region.bindings]

    made = [b.var.name for b in order]
    assert order.index(cast) < made.index("z") < made.index("a")


# --- which are alike ----------------------------------------------------------------------


def view_of(body: str) -> object:
    text = f"""
@R.function
def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32"), n: R.Tensor((k,), "float32")):
    k = T.int64()
    with R.dataflow():
        out = {body}
        R.output(out)
    return out
"""
    block = block_of(rx.parse(text))
    return signature(encode(block.bindings, [block.bindings[-1].var]).view)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("R.add(x, y)", "R.add(y, x)"),
        ("R.add(x, R.const([1.0, 2, 3, 4]))", "R.add(y, R.const([5.0, 6, 7, 8]))"),
        ('R.call_pure_packed("f", x, y, sinfo_args=R.Tensor((4,), "float32"))',) * 2,
    ],
)
def test_regions_are_alike_up_to_their_leaves(a: str, b: str) -> None:
    assert view_of(a) == view_of(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("R.add(x, y)", "R.add(x, x)"),
        ("R.exp(x)", "R.exp(n)"),
        ("R.add(x, y)", "R.subtract(x, y)"),
        ("R.add(x, R.const(1.0))", "R.add(x, R.const(2.0))"),
        ("R.add(x, R.const(0.0))", "R.add(x, R.const(-0.0))"),
        ("R.add(x, R.const([1.0, 2, 3, 4]))", "R.add(x, y)"),
        ("R.nn.leakyrelu(x, alpha=0.1)", "R.nn.leakyrelu(x, alpha=0.2)"),
        ("R.zeros(R.shape([k]), dtype='int64')", "R.zeros(R.shape([k + 1]), dtype='int64')"),
        (
            'R.call_pure_packed("f", x, y, sinfo_args=R.Tensor((4,), "float32"))',
            'R.call_pure_packed("g", x, y, sinfo_args=R.Tensor((4,), "float32"))',
        ),
        (
            'R.call_pure_packed("f", x, y, sinfo_args=R.Tensor((4,), "float32"))',
            'R.call_pure_packed("f", x, x, sinfo_args=R.Tensor((4,), "float32"))',
        ),
    ],
)
def test_regions_are_not_alike_if_programs_may_differ(a: str, b: str) -> None:
    assert view_of(a) != view_of(b)


# --- what they mean ------------------------------------------------------------------------


@pytest.fixture
def small_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    planning = import_module("relax_egraph.optimize.planner")
    monkeypatch.setattr(planning, "regions_of", partial(regions_of, size=4))


def in_regions(module: IRModule, size: int) -> IRModule:
    """`module` with the bindings of each outermost dataflow block in the order of its regions."""
    functions = dict(module.functions)
    for name, function in module.relax_functions():
        blocks = list(function.body.blocks)
        for k, block in enumerate(blocks):
            if isinstance(block, DataflowBlock):
                seen: dict[Var, Binding] = {}
                for region in cut(block, size):
                    seen |= {b.var: b for b in region.bindings if b.var not in seen}
                blocks[k] = DataflowBlock(tuple(seen.values()))
        functions[name] = replace(function, body=replace(function.body, blocks=tuple(blocks)))
    return replace(module, functions=functions)


@pytest.mark.parametrize("seed", range(40))
def test_regions_in_order_are_the_block(seed: int) -> None:
    program = random_program(seed)
    ordered = in_regions(program.module, 3)

    assert_well_formed(ordered)
    inputs = program.inputs({s: SAMPLE[s] for s in program.symbols})
    try:
        expected = evaluate(program.module, "main", *inputs, packed=PACKED, prim_func=by_numpy)
    except RunError:
        return
    found = evaluate(ordered, "main", *inputs, packed=PACKED, prim_func=by_numpy)
    for a, b in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.usefixtures("small_regions")
@pytest.mark.parametrize("seed", range(100, 108))
def test_programs_in_small_regions_mean_the_same(seed: int) -> None:
    program = random_program(seed)
    inputs = program.inputs({s: SAMPLE[s] for s in program.symbols})
    best = rx.optimize(program.module)

    assert_well_formed(best)
    try:
        expected = bounds(program.module, inputs, PACKED, prim_func=by_numpy)
    except RunError:
        return
    found = evaluate(best, "main", *inputs, packed=PACKED, prim_func=by_numpy)
    if expected is not None:
        assert_within(found, expected, "in small regions")
