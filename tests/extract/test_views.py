"""Programs that are extracted from hand-made views."""

import math

import pytest

from relax_egraph.errors import ExtractionError
from relax_egraph.extract import REFERENCE_PROFILE, Prices, baseline_cost, extract, price
from relax_egraph.extract.cost import FOLDING, KEPT_BYTE, VIEW, Costs
from relax_egraph.extract.cost import OPAQUE as OPAQUE_SECONDS
from relax_egraph.extract.cost import RUNTIME_CALL as CALL_SECONDS
from relax_egraph.extract.effort import Effort
from relax_egraph.extract.free_values import free_values_of
from relax_egraph.ir.kernel import Kernel, Schedule
from relax_egraph.ir.struct_info import ShapeStructInfo
from relax_egraph.lower.library import Library as CompilersLibrary
from tests.extract.test_graph import Graph, Library, N, kernels, shown


def test_product_bias_and_activation_become_one_kernel() -> None:
    g = Graph()
    x, w, b = g.leaf(N, 784), g.leaf(784, 128, const=True), g.leaf(128, const=True)
    biased = g.op("add", g.op("matmul", x, w), g.op("broadcast_to", b, (N, 128)))
    y = g.op("nn.relu", biased)

    found = extract(g.view(y), Library(), hints={"n": 128})

    assert shown(found) == [
        "0 = !leaf()",
        "1 = !leaf()",
        "2 = !leaf()",
        "6 = nn.relu(add(matmul(0, 1), broadcast_to(2)))",
    ]
    assert (found.status, found.gap, found.dropped) == ("optimal", 0.0, 0)
    kernel = found.program[-1].how
    assert isinstance(kernel, Kernel)
    assert found.cost == price(kernel, Schedule("matmul", 0.9, 0.9), hints={"n": 128})
    assert [str(step.struct_info) for step in kernel.steps] == ['R.Tensor((n, 128), "float32")'] * 4
    assert kernel.steps[1].operands == (2, ShapeStructInfo((N, 128), 2))


def test_of_equal_forms_the_one_with_fewer_steps_is_chosen() -> None:
    g = Graph()
    a, b, c = g.leaf(N), g.leaf(N), g.leaf(N)
    y = g.op("add", g.op("multiply", a, b), c)
    g.op("ewise_fma", a, b, c, into=y)

    found = extract(g.view(y), Library())

    assert kernels(found) == ["4 = ewise_fma(0, 1, 2)"]


def test_a_cheap_value_that_is_used_twice_is_computed_twice() -> None:
    g = Graph()
    h = g.op("nn.relu", g.leaf(1024))
    left, right = g.op("exp", h), g.op("sqrt", h)

    found = extract(g.view(left, right), Library(most_outputs=1))

    assert kernels(found) == ["2 = exp(nn.relu(0))", "3 = sqrt(nn.relu(0))"]


def test_a_dear_value_that_is_used_twice_is_stored() -> None:
    g = Graph()
    h = g.op("matmul", g.leaf(N, 64), g.leaf(64, 64))
    left, right = g.op("exp", h), g.op("sqrt", h)
    view = g.view(left, right)

    library = Library(most_outputs=1)
    many, few = (extract(view, library, hints={"n": n}) for n in (1000, 1))

    assert kernels(many) == ["2 = matmul(0, 1)", "3 = exp(2)", "4 = sqrt(2)"]
    assert kernels(few) == ["3 = exp(matmul(0, 1))", "4 = sqrt(matmul(0, 1))"]


def test_a_value_that_is_used_twice_in_a_kernel_is_computed_once_there() -> None:
    g = Graph()
    e = g.op("exp", g.leaf(N))
    y = g.op("add", g.op("multiply", e, e), e)

    found = extract(g.view(y), Library())

    assert kernels(found) == ["3 = add(multiply(exp(0), exp(0)), exp(0))"]
    kernel = found.program[-1].how
    assert isinstance(kernel, Kernel)
    assert [(s.op.name, s.operands) for s in kernel.steps] == [
        ("exp", (0,)),
        ("multiply", (1, 1)),
        ("add", (2, 1)),
    ]


def test_constants_are_folded_and_never_computed_in_a_kernel() -> None:
    g = Graph()
    x, a, b = g.leaf(4), g.leaf(4, const=True), g.leaf(4, const=True)
    w = g.op("add", g.op("negative", a), b)
    g.op("subtract", b, a, into=w)
    y = g.op("multiply", x, w)

    found = extract(g.view(y), Library())

    assert shown(found) == [
        "0 = !leaf()",
        "2 = !leaf()",
        "1 = !leaf()",
        "4 = !subtract(2, 1)",
        "5 = multiply(0, 4)",
    ]
    kernel = found.program[-1].how
    assert isinstance(kernel, Kernel)
    build = FOLDING + 16 * KEPT_BYTE
    assert found.cost == build + price(kernel, Schedule("elementwise", 0.5, 1.0))


def test_a_constant_of_symbolic_shape_is_not_folded() -> None:
    g = Graph()
    c = g.leaf(const=True)
    y = g.op("broadcast_to", c, (N,))

    found = extract(g.view(y), Library())

    assert shown(found) == ["0 = !leaf()", "1 = broadcast_to(0)"]


def test_known_scalars_are_inputs_with_their_value_in_their_dtype() -> None:
    g = Graph()
    x, i = g.leaf(N), g.leaf(N, dtype="int64")
    half = g.op("multiply", x, g.op("broadcast_to", g.scalar(0.5), (N,)))
    three = g.op("add", i, g.op("broadcast_to", g.scalar(3.0, "int64"), (N,)))

    found = extract(g.view(half, three), Library(most_outputs=1))

    used = [choice.how for choice in found.program if isinstance(choice.how, Kernel)]
    assert kernels(found) == ["4 = multiply(0, broadcast_to(2))", "7 = add(1, broadcast_to(5))"]
    assert [repr(kernel.inputs[1].scalar) for kernel in used] == ["0.5", "3"]


def test_values_that_are_reshaped_to_and_fro_have_no_cycle() -> None:
    g = Graph()
    x = g.leaf(N, 4)
    a = g.op("exp", x)
    b = g.op("reshape", a, (4, N))
    g.op("reshape", b, (N, 4), into=a)

    found = extract(g.view(b, a), Library())

    assert kernels(found) == ["1 = exp(0)", "2 = reshape(1)"]


def test_an_operator_of_unknown_shape_is_called_at_run_time() -> None:
    g = Graph()
    x = g.leaf(N)
    y = g.op("nn.relu", g.op("unique", g.op("exp", x)))
    library = Library()

    found = extract(g.view(y), library)

    assert shown(found) == ["0 = !leaf()", "1 = exp(0)", "2 = !unique(1)", "3 = !nn.relu(2)"]
    assert found.cost > 2 * CALL_SECONDS
    assert [k.steps[0].op.name for k in library.asked] == ["exp"]


def test_an_operator_that_the_library_refuses_is_called_only_if_there_is_no_other_form() -> None:
    g = Graph()
    x = g.leaf(N)
    y = g.op("power", x, x)

    only = extract(g.view(y), Library(frozenset({"power"})))
    g.op("exp", g.op("multiply", x, g.op("log", x)), into=y)
    other = extract(g.view(y), Library(frozenset({"power"})))

    assert kernels(only) == []
    assert shown(only)[-1] == "1 = !power(0, 0)"
    assert kernels(other) == ["1 = exp(multiply(0, log(0)))"]


def test_an_operator_with_loops_of_its_own_is_weighed_beside_kernels() -> None:
    g = Graph()
    x = g.leaf(N, 64)
    y = g.op("nn.softmax", x)
    g.op(
        "divide", g.op("exp", x), g.op("broadcast_to", g.op("sum", g.op("exp", x)), (N, 64)), into=y
    )
    refused = frozenset({"nn.softmax"})
    fast, slow = Schedule("rows", 0.5, 0.8), Schedule("rows", 1e-3, 1e-3)

    found = [extract(g.view(y), Library(refused, {"nn.softmax": s})) for s in (fast, slow)]

    assert shown(found[0])[-1] == "1 = !nn.softmax(0)"
    assert "softmax" not in " ".join(shown(found[1]))


def test_classes_that_kernels_make_only_of_each_other_are_called_at_run_time() -> None:
    g = Graph()
    x = g.leaf(N, 4)
    a = g.op("power", x, x)
    b = g.op("reshape", a, (4, N))
    g.op("reshape", b, (N, 4), into=a)

    found = extract(g.view(b), Library(frozenset({"power"})))

    assert shown(found) == ["0 = !leaf()", "1 = !power(0, 0)", "2 = reshape(1)"]


def test_opaque_bindings_stay_as_they_are() -> None:
    g = Graph()
    x = g.leaf(8)
    called = g.opaque(g.op("exp", x), shape=(8,))
    y = g.op("nn.relu", called)

    found = extract(g.view(y, called, called), Library())

    assert shown(found) == ["0 = !leaf()", "1 = exp(0)", "2 = !opaque(1)", "3 = nn.relu(2)"]
    launches = 2 * REFERENCE_PROFILE.launch
    assert OPAQUE_SECONDS + launches < found.cost < OPAQUE_SECONDS + launches + 1e-8


def test_a_constant_that_would_be_much_larger_is_not_folded() -> None:
    g = Graph()
    column, row = g.leaf(2000, 1, const=True), g.leaf(1, 2000, const=True)
    outer = g.op("matmul", column, row)
    x = g.leaf(2000, 2000)
    y = g.op("add", x, outer)

    found = extract(g.view(y), Library(), growth_limit=1 << 20)
    folded = extract(g.view(y), Library(), growth_limit=1 << 24)

    assert shown(found)[-1] == "4 = add(3, matmul(0, 1))"
    assert shown(folded)[-2:] == ["2 = !matmul(0, 1)", "4 = add(3, 2)"]


def test_a_constant_is_not_repeated_in_memory() -> None:
    g = Graph()
    x, row = g.leaf(50, 8), g.leaf(8, const=True)
    y = g.op("add", x, g.op("broadcast_to", row, (50, 8)))

    found = extract(g.view(y), Library())

    assert shown(found) == ["0 = !leaf()", "1 = !leaf()", "3 = add(0, broadcast_to(1))"]


def test_constants_that_are_made_of_each_other_are_made_of_what_one_of_them_repeats() -> None:
    g = Graph()
    row = g.leaf(8, const=True)
    spread = g.op("broadcast_to", row, (50, 8))
    negated = g.op("negative", spread)
    g.op("negative", negated, into=spread)
    g.op("maximum", spread, spread, into=spread)
    given = free_values_of(g.view(spread, negated))

    made = {c: getattr(choice.how, "op", "") for c, choice in given.choices.items()}

    assert made == {row: "leaf", spread: "broadcast_to", negated: "negative"}


def test_a_constant_is_read_as_what_it_repeats_though_nothing_else_reads_that() -> None:
    g = Graph()
    x, half = g.leaf(1, 1), g.scalar(0.5)
    y = g.op("add", x, g.op("broadcast_to", half, (1, 1)))

    found = extract(g.view(y, fused=False), Library())

    assert shown(found) == ["0 = !leaf()", "1 = !scalar()", "3 = add(0, broadcast_to(1))"]


def test_a_user_prices_calls_by_name() -> None:
    g = Graph()
    x = g.leaf(8)
    known, other = (g.opaque(x, shape=(8,), name=name) for name in ("sorted", "shuffled"))
    view = g.view(known, other)
    prices = Prices(calls={"sorted": 3.0})

    found = extract(view, Library(), prices=prices)

    assert found.cost == 3.0 + OPAQUE_SECONDS
    assert baseline_cost(g.view(known, other, fused=False), Library(), prices=prices) == found.cost


def test_a_kernel_of_infinite_price_is_not_used() -> None:
    g = Graph()
    x = g.leaf(1000)
    y = g.op("nn.relu", g.op("exp", x))
    prices = Prices(
        kernel=lambda kernel, _, seconds: math.inf if len(kernel.steps) > 1 else seconds
    )

    found = extract(g.view(y), Library(), prices=prices)

    assert shown(found) == ["0 = !leaf()", "1 = exp(0)", "2 = nn.relu(1)"]


def test_operators_without_kernel_classes_are_kernels_of_their_own() -> None:
    g = Graph()
    y = g.op("exp", g.op("nn.relu", g.leaf(N)))

    found = extract(g.view(y, fused=False), Library())

    assert kernels(found) == ["1 = nn.relu(0)", "2 = exp(1)"]


def test_equal_kernels_are_asked_for_once() -> None:
    g = Graph()
    x = g.leaf(N, 8)
    library = Library()
    for _ in range(5):
        x = g.op("nn.softmax", x)

    found = extract(g.view(x), library)

    assert len(kernels(found)) == 5
    assert len({id(choice.how) for choice in found.program[1:]}) == 1
    assert [len(kernel.steps) for kernel in library.asked] == [1, 2, 3, 4, 5]
    assert found.kernels == 5


def test_a_view_is_taken_for_nothing() -> None:
    g = Graph()
    y = g.op("reshape", g.leaf(N, 4), (4, N))

    found = extract(g.view(y), Library())

    assert found.cost == VIEW


def test_a_root_without_a_program_is_named_with_what_is_missing() -> None:
    g = Graph()
    x = g.leaf(N)
    y = g.op("exp", x)
    g.nodes[x] = []

    with pytest.raises(ExtractionError) as caught:
        extract(g.view(y), Library())

    assert str(caught.value) == (
        'root 0, class 1, R.Tensor((n,), "float32") has no finite program: '
        'nothing makes class 0, R.Tensor((n,), "float32")'
    )


def test_a_root_that_needs_itself_is_named() -> None:
    g = Graph()
    y = g.op("exp", g.leaf(N))
    g.nodes[y] = []
    g.op("negative", g.op("negative", y), into=y)

    with pytest.raises(ExtractionError) as caught:
        extract(g.view(y), Library())

    assert str(caught.value) == (
        'root 0, class 1, R.Tensor((n,), "float32") has no finite program: '
        "every way to make it needs itself"
    )


def test_without_time_there_is_still_a_program() -> None:
    g = Graph()
    x = g.leaf(N, 64)
    for _ in range(3):
        h = g.op("matmul", x, g.leaf(64, 64))
        x = g.op("add", g.op("exp", h), g.op("add", g.op("sqrt", h), x))

    fast = extract(g.view(x), Library(), effort=Effort(0.0))
    best = extract(g.view(x), Library())

    assert best.status == "optimal"
    assert best.bound == pytest.approx(best.cost)
    assert best.cost <= fast.cost
    assert fast.bound <= best.cost


def test_the_cost_before_is_that_of_a_kernel_for_each_operator() -> None:
    g = Graph()
    x, b = g.leaf(N, 8), g.leaf(8, const=True)
    y = g.op("nn.relu", g.op("add", x, g.op("broadcast_to", b, (N, 8))))
    called = g.opaque(g.op("unique", y), shape=(8,))
    c = g.op("multiply", called, g.op("negative", b))

    library = Library()
    before = baseline_cost(g.view(c, fused=False), library)

    assert [[step.op.name for step in k.steps] for k in library.asked] == [
        ["multiply"],
        ["nn.relu"],
        ["broadcast_to", "add"],
    ]
    runs = [price(k, Schedule("elementwise", 0.5, 1.0)) for k in library.asked]
    (node,) = g.nodes[5]
    operand, result = g.infos[4], g.infos[5]
    costs = Costs(REFERENCE_PROFILE)
    unique = costs.operator("unique", dict(node.attrs), (operand,), (result,), None)
    assert before == pytest.approx(sum(runs) + OPAQUE_SECONDS + FOLDING + unique)


def test_a_program_costs_no_more_than_its_operators_one_by_one() -> None:
    g = Graph()
    x, y, z = g.leaf(2, dtype="float64"), g.leaf(33), g.leaf(33)
    below = g.op("less", g.op("broadcast_to", g.op("matmul", x, x), (2,)), x)
    least = g.op("minimum", y, y)
    operands = (below, g.op("expand_dims", z, axis=(1,)), g.op("matmul", least, least))
    chosen = g.op("where", *(g.op("broadcast_to", o, (33, 2)) for o in operands))
    library = CompilersLibrary()

    found = extract(g.view(chosen), library)

    assert found.cost <= baseline_cost(g.view(chosen, fused=False), library)


def test_the_cost_before_falls_back_as_extraction_does() -> None:
    g = Graph()
    x, b = g.leaf(N, 8), g.leaf(8)
    y = g.op("add", x, g.op("broadcast_to", b, (N, 8)))
    view = g.view(y, fused=False)

    whole = baseline_cost(view, Library())
    split = baseline_cost(view, Library(refused=frozenset({"broadcast_to"})))
    called = baseline_cost(view, Library(refused=frozenset({"add"})))

    assert whole < CALL_SECONDS < split
    assert called > CALL_SECONDS
