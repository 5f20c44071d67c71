"""Kernels that make several classes at once: each is stored by the kernel that has it anyway."""

import itertools
import math
import random
from collections.abc import Mapping

import pytest

from relax_egraph.egraph.node import LEAF, STORE
from relax_egraph.egraph.view import ClassId, View
from relax_egraph.extract import REFERENCE_PROFILE, Extraction, extract, price
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.cuts import Bounds
from relax_egraph.extract.multi_output import multi_output_kernels
from relax_egraph.extract.problem import Candidate, Problem
from relax_egraph.extract.profile import Level, Profile
from relax_egraph.extract.select import select
from relax_egraph.ir.kernel import Kernel, Schedule
from tests.extract.test_cuts import BINARY, UNARY, WIDE, all_cuts, searched
from tests.extract.test_graph import Graph, Library, N, kernels

ELEMENTWISE = Schedule("elementwise", 0.5, 1.0)
ONE_OUTPUT = Library(most_outputs=1)


def chosen(found: Extraction) -> list[Kernel]:
    return [choice.how for choice in found.program if isinstance(choice.how, Kernel)]


def test_a_value_that_is_used_on_and_returned_is_stored_as_it_is_passed() -> None:
    g = Graph()
    h = g.op("negative", g.leaf(N))
    y = g.op("tanh", h)

    found = extract(g.view(h, y), Library())

    assert kernels(found) == ["1, 2 = negative(0), tanh(negative(0))"]
    (kernel,) = chosen(found)
    assert [(s.op.name, s.operands) for s in kernel.steps] == [("negative", (0,)), ("tanh", (1,))]
    assert kernel.outputs == (1, 2)
    assert (found.status, found.gap) == ("optimal", 0.0)
    assert found.cost == price(kernel, ELEMENTWISE)


def test_a_product_and_what_follows_it_are_stored_from_the_hot_tile() -> None:
    g = Graph()
    h = g.op("matmul", g.leaf(N, 64), g.leaf(64, 64))
    left, right = g.op("exp", h), g.op("sqrt", h)
    sized = {"n": 1000}

    two = extract(g.view(left, right), Library(), hints=sized)
    three = extract(g.view(left, right, h), Library(), hints=sized)

    assert kernels(two) == ["3, 4 = exp(matmul(0, 1)), sqrt(matmul(0, 1))"]
    assert kernels(three) == ["2, 3, 4 = matmul(0, 1), exp(matmul(0, 1)), sqrt(matmul(0, 1))"]
    one_by_one = extract(g.view(left, right), ONE_OUTPUT, hints=sized)
    assert kernels(one_by_one) == ["2 = matmul(0, 1)", "3 = exp(2)", "4 = sqrt(2)"]
    assert two.cost < three.cost < one_by_one.cost


def test_what_another_kernel_reads_is_stored_on_the_way() -> None:
    g = Graph()
    x = g.leaf(64, 64)
    h = g.op("exp", x)
    y = g.op("negative", h)
    product = g.op("matmul", h, x)

    found = extract(g.view(y, product), Library())

    assert kernels(found) == ["1, 2 = exp(0), negative(exp(0))", "3 = matmul(1, 0)"]


def test_what_nobody_else_needs_is_not_stored() -> None:
    g = Graph()
    y = g.op("negative", g.op("exp", g.leaf(N)))

    found = extract(g.view(y), Library())

    assert kernels(found) == ["2 = negative(exp(0))"]


def machine(peak: float, bandwidth: float) -> Profile:
    """One that computes or moves so fast that only the other counts."""
    peaks = dict.fromkeys(REFERENCE_PROFILE.peak, peak)
    return Profile("a test's", 1e-6, peaks, (Level(math.inf, bandwidth),))


def test_a_kernel_of_two_outputs_reads_once_and_kernels_of_one_read_once_each() -> None:
    g = Graph()
    n = 1000
    h = g.op("negative", g.leaf(n))
    view = g.view(h, g.op("abs", h))
    only_moves = machine(peak=1e18, bandwidth=4e9)

    together = extract(view, Library(), profile=only_moves)
    apart = extract(view, ONE_OUTPUT, profile=only_moves)

    assert kernels(together) == ["1, 2 = negative(0), abs(negative(0))"]
    assert kernels(apart) == ["1 = negative(0)", "2 = abs(1)"]
    assert together.cost == pytest.approx(1e-6 + 3 * n * 1e-9, rel=1e-3)
    assert apart.cost == pytest.approx(2 * (1e-6 + 2 * n * 1e-9), rel=1e-3)


def test_a_kernel_of_two_outputs_computes_once_and_kernels_of_one_compute_once_each() -> None:
    g = Graph()
    n = 1000
    e = g.op("exp", g.leaf(n))
    view = g.view(g.op("abs", e), g.op("negative", e))
    only_computes = machine(peak=2e11, bandwidth=1e18)

    together = extract(view, Library(), profile=only_computes)
    apart = extract(view, ONE_OUTPUT, profile=only_computes)

    exp, each = 20 * n * 1e-11, n * 1e-11
    assert kernels(together) == ["2, 3 = abs(exp(0)), negative(exp(0))"]
    assert kernels(apart) == ["2 = abs(exp(0))", "3 = negative(exp(0))"]
    assert together.cost == pytest.approx(1e-6 + exp + 2 * each, rel=1e-3)
    assert apart.cost == pytest.approx(2 * (1e-6 + exp + each), rel=1e-3)


def test_small_kernels_of_one_shape_are_launched_together() -> None:
    g = Graph()
    outputs = [g.op("exp", g.leaf(100)) for _ in range(3)]

    found = extract(g.view(*outputs), Library())

    assert kernels(found) == ["1, 3, 5 = exp(0), exp(2), exp(4)"]


def test_kernels_that_take_long_are_left_apart() -> None:
    g = Graph()
    large = 1 << 24
    outputs = [g.op("negative", g.leaf(large)) for _ in range(2)]

    found = extract(g.view(*outputs), Library())

    assert kernels(found) == ["1 = negative(0)", "3 = negative(2)"]


def test_large_kernels_that_read_one_tensor_are_joined() -> None:
    g = Graph()
    x = g.leaf(1 << 24)

    found = extract(g.view(g.op("negative", x), g.op("abs", x)), Library())

    assert kernels(found) == ["1, 2 = negative(0), abs(0)"]


def test_kernels_that_would_need_each_other_crosswise_are_not_both_chosen() -> None:
    """Both ``a, d`` and ``b, c`` read one tensor; but ``b`` needs ``a``, and ``d`` needs ``c``."""
    g = Graph()
    p, q = g.leaf(16, 16), g.leaf(8, 32)
    a, c = g.op("exp", p), g.op("exp", q)
    b = g.op("multiply", g.opaque(a, shape=(8, 32)), q)
    d = g.op("multiply", g.opaque(c, shape=(16, 16)), p)
    view = g.view(a, b, c, d)
    table, catalogue = searched(view, Bounds())

    weighed = [set(s.parts) for s in multi_output_kernels(view, table, catalogue, Bounds())]
    found = extract(view, Library())

    assert {a, d} in weighed
    assert {b, c} in weighed
    assert len(chosen(found)) == 3
    made: set[ClassId] = set()
    for choice in found.program:
        assert made.issuperset(choice.inputs)
        assert made.isdisjoint(choice.outputs)
        made.update(choice.outputs)


def test_of_a_chain_of_two_outputs_the_later_waits_for_no_kernel_of_its_own() -> None:
    """The last needs a product of the first: both in one kernel would be a circle."""
    g = Graph()
    x, w = g.leaf(8, 8), g.leaf(8, 8)
    h = g.op("exp", x)
    y = g.op("add", h, g.op("matmul", h, w))

    found = extract(g.view(h, y), Library())

    assert kernels(found) == ["2 = exp(0)", "4 = add(2, matmul(2, 1))"]


def test_a_kernel_makes_eight_classes_at_most() -> None:
    g = Graph()
    outputs = [g.op("exp", g.leaf(100)) for _ in range(20)]

    found = extract(g.view(*outputs), Library())

    widths = [len(choice.outputs) for choice in found.program if isinstance(choice.how, Kernel)]
    assert sum(widths) == 20
    assert max(widths) == 8


def test_what_is_weighed_grows_with_the_classes_and_not_with_their_pairs() -> None:
    def weighed(count: int) -> int:
        g = Graph()
        x = g.leaf(100)
        view = g.view(*(g.op("multiply", x, g.leaf(100)) for _ in range(count)))
        table, catalogue = searched(view, Bounds())
        return len(multi_output_kernels(view, table, catalogue, Bounds()))

    assert weighed(40) <= 2 * 40
    assert weighed(160) <= 2 * 160


def test_of_what_a_kernel_could_make_it_makes_what_is_taken_from_it() -> None:
    g = Graph()
    x, y = g.leaf(100), g.leaf(100)
    a, b = g.op("exp", x), g.op("tanh", y)
    c = g.op("abs", a)
    view = g.view(a, b, c)
    table, catalogue = searched(view, Bounds())
    kernel = max(multi_output_kernels(view, table, catalogue, Bounds()), key=lambda s: len(s.parts))

    assert set(kernel.priced.choice.outputs) == {a, b, c}
    two, one = (kernel.choice(wanted, catalogue) for wanted in ({a, c}, {b}))

    assert (set(two.outputs), two.inputs) == ({a, c}, (x,))
    assert (one.outputs, one.inputs) == ((b,), (y,))
    for choice, count in ((two, 2), (one, 1)):
        assert isinstance(choice.how, Kernel)
        assert (len(choice.how.steps), len(choice.how.outputs)) == (count, count)


# --- against all there is ---------------------------------------------------------------


def random_graph(seed: int) -> tuple[Graph, tuple[ClassId, ...]]:
    """A few operators on two leaves, small or large, with other forms; some are roots."""
    draw = random.Random(seed)
    g = Graph()
    size = draw.choice((10, 1000, 100_000))
    made = [g.leaf(size), g.leaf(size)]
    for _ in range(draw.randint(2, 5)):
        name, x, y = draw.choice(UNARY + BINARY), draw.choice(made), draw.choice(made)
        c = g.op(name, x, y) if name in BINARY else g.op(name, x)
        made.append(c)
        if name in ("add", "multiply") and draw.random() < 0.3:
            g.op(name, y, x, into=c)
        elif name == "subtract" and draw.random() < 0.3:
            g.op("add", x, g.op("negative", y), into=c)
    return g, tuple(draw.sample(made[2:], min(3, len(made) - 2)))


def every_kernel(view: View, most: int) -> Problem:
    """The problem of choosing among all kernels of up to `most` outputs."""
    catalogue = searched(view, WIDE)[1]
    stored = {
        c: node.operands[0]
        for c, eclass in view.classes.items()
        for node in eclass.nodes
        if node.op == STORE
    }
    leaves = [c for c, eclass in view.classes.items() if eclass.nodes[0].op == LEAF]
    candidates = [Candidate(c, frozenset(), 0.0) for c in leaves]
    fresh = itertools.count(max(view.classes) + 1)
    for size in range(1, most + 1):
        for outputs in itertools.combinations(stored, size):
            for read, seconds in _cheapest_by_reads(view, catalogue, outputs, stored).items():
                kernel = next(fresh)
                candidates.append(Candidate(kernel, read, seconds))
                candidates += [Candidate(c, frozenset({kernel}), 0.0) for c in outputs]
    return Problem(tuple(candidates), view.roots)


def _cheapest_by_reads(
    view: View,
    catalogue: Catalogue,
    outputs: tuple[ClassId, ...],
    stored: Mapping[ClassId, ClassId],
) -> dict[frozenset[ClassId], float]:
    tops = {stored[c] for c in outputs}
    least: dict[frozenset[ClassId], float] = {}
    for cut in all_cuts(view, catalogue, *(stored[c] for c in outputs)):
        computed = {term.owner for term, _ in cut.steps}
        offer = catalogue.offer(cut) if tops <= computed else None
        if offer is not None:
            read = frozenset(cut.leaves)
            least[read] = min(offer.seconds, least.get(read, offer.seconds))
    return least


@pytest.mark.parametrize("seed", range(40))
def test_no_kernels_of_up_to_three_outputs_make_a_better_program(seed: int) -> None:
    g, roots = random_graph(seed)
    view = g.view(*roots)

    found = extract(view, Library(most_outputs=3))

    assert found.status == "optimal"
    assert found.cost == pytest.approx(select(every_kernel(view, most=3)).cost, rel=1e-6)
