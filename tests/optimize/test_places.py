"""Steps of an unrolled loop, which read at places of their own, are optimized once."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.egraph.encoding.encode import encode
from relax_egraph.egraph.encoding.places import Placed, placed
from relax_egraph.egraph.encoding.signature import signature
from relax_egraph.egraph.view import View
from relax_egraph.ir import IRModule
from relax_egraph.ir.assumptions import Range
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Function
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.optimize.explanation import RegionReport
from relax_egraph.proof.prove import prove
from tests.support.exported import module_of

TAKEN = "r{k} = R.expand_dims(R.take(x, R.const({first}), axis=0), axis=[0])"
SLICED = "r{k} = R.strided_slice(x, axes=[0], begin=[{first}], end=[{first} + 1])"
JOINED = """a{k} = R.strided_slice(x, axes=[0], begin=[{first}], end=[{first} + 1])
        b{k} = R.strided_slice(x, axes=[0], begin=[{second}], end=[{second} + 1])
        r{k} = R.sum(R.concat((a{k}, b{k}), axis=0), axis=[0], keepdims=True)"""


def steps(read: str, places: Sequence[tuple[int, ...]], extent: int) -> IRModule:
    """A step for each of `places`, which makes the next state from the last and what it reads."""

    def lines() -> Iterator[str]:
        for k, (first, *others) in enumerate(places, 1):
            yield read.format(k=k, first=first, second=others[0] if others else 0)
            yield f"s{k} = R.tanh(R.add(R.matmul(s{k - 1}, w), r{k}))"

    body = "\n        ".join(lines())
    return rx.parse(
        f"""
@R.function
def main(x: R.Tensor(({extent}, 4), "float32"), s0: R.Tensor((1, 4), "float32"),
         w: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        {body}
        out = R.add(s{len(places)}, s0)
        R.output(out)
    return out
"""
    )


def assert_same_results(module: IRModule, best: IRModule, extent: int) -> None:
    assert_well_formed(best)
    rng = np.random.default_rng(0)
    args = [rng.normal(size=(n, 4)).astype(np.float32) for n in (extent, 1, 4)]
    expected, found = (evaluate(m, "main", *args) for m in (module, best))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("read", [TAKEN, SLICED])
def test_steps_are_optimized_once(read: str) -> None:
    module = steps(read, [(k,) for k in range(80)], 80)

    report = rx.explain(module)

    assert_same_results(module, report.module, 80)
    (step,) = (region for region in report.regions if region.uses > 1)
    prove(step, [f"out{k}" for k in range(len(step.view.roots))])
    assert not report.assumed


def test_adjacent_slices_are_joined_and_others_are_not() -> None:
    module = steps(JOINED, [(2 * k + 1, 2 * k + 2 + k // 43) for k in range(60)], 122)

    report = rx.explain(module)

    assert_same_results(module, report.module, 122)
    adjacent, *_, apart = report.regions
    assert adjacent.uses >= 2
    assert both_as_one_slice(adjacent)
    assert not both_as_one_slice(apart)


def both_as_one_slice(region: RegionReport) -> bool:
    """Whether rules read two places as one slice."""
    pairs = (c for c in region.view.classes.values() if c.struct_info.dims == (2, 4))
    return any(node.op == "strided_slice" for pair in pairs for node in pair.nodes)


def forms_of(*regions: Sequence[tuple[int, int]]) -> list[Placed]:
    """The forms of regions, each of slices of x, which has 30 rows, at some places."""

    def view_of(places: Sequence[tuple[int, int]]) -> View:
        names = [f"y{k}" for k in range(len(places))]
        lines = (
            f"{name} = R.strided_slice(x, axes=[0], begin=[{begin}], end=[{end}])"
            for name, (begin, end) in zip(names, places, strict=True)
        )
        main = module_of("x(30, 4)", "\n".join(lines), tuple(names))["main"]
        assert isinstance(main, Function)
        bindings = main.body.blocks[0].bindings
        return encode(bindings, [b.var for b in bindings]).view

    return placed([view_of(region) for region in regions], set[str])


def test_equal_distances_are_one_form() -> None:
    first, second = forms_of([(3, 4), (4, 6)], [(13, 14), (14, 16)])

    assert signature(first.view) == signature(second.view)
    assert (first.at, second.at) == ({"at0": 3}, {"at0": 13})
    assert first.ranges == second.ranges == (("at0", Range(most=27)),)


def test_other_distances_are_another_form() -> None:
    adjacent, again, apart, swapped = forms_of(
        [(3, 4), (4, 5)], [(5, 6), (6, 7)], [(13, 14), (15, 16)], [(4, 5), (3, 4)]
    )

    assert adjacent.at
    assert signature(adjacent.view) == signature(again.view)
    assert not apart.at
    assert not swapped.at


def test_a_slice_that_reaches_an_end_keeps_its_numbers() -> None:
    for begin in (0, 29):
        first, second = forms_of([(begin, begin + 1)], [(10, 11)])

        assert not first.at
        assert not second.at
