"""Loop functions that compute what operators compute fuse with operators, and match their rules."""

import pytest

import relax_egraph as rx
from bench.census import census
from relax_egraph.passes import PassContext
from tests.support.pairs import has_kernels_of

SQUARE = '((T.int64(64), T.int64(64)), "float32")'


def loops(name: str, params: str, *lines: str) -> str:
    """A private loop function."""
    header = f"@T.prim_func(private=True)\ndef {name}({params}):"
    return "\n    ".join((header, *lines)) + "\n"


def graph(params: str, *lines: str, result: str = "out") -> str:
    """The function `main` with all bindings in one dataflow block."""
    block = "\n        ".join(("with R.dataflow():", *lines, f"R.output({result})"))
    return f"@R.function\ndef main({params}):\n    {block}\n    return {result}\n"


def matrices(*names: str) -> str:
    return ", ".join(f'{n}: R.Tensor((64, 64), "float32")' for n in names)


def buffers(*names: str) -> str:
    return ", ".join(f'{n}: T.Buffer((64, 64), "float32")' for n in names)


def call(name: str, *args: str) -> str:
    operands = "".join(f"{a}, " for a in args)
    return f'R.call_tir(cls.{name}, ({operands}), out_sinfo=R.Tensor((64, 64), "float32"))'


TWICE = loops(
    "twice",
    buffers("x", "y"),
    "for i, j in T.grid(64, 64):",
    '    with T.block("y"):',
    '        vi, vj = T.axis.remap("SS", [i, j])',
    "        y[vi, vj] = x[vi, vj] * T.float32(2)",
)
SOFTMAX = loops(
    "softmax",
    buffers("x", "y"),
    'top = T.alloc_buffer((64,), "float32")',
    'e = T.alloc_buffer((64, 64), "float32")',
    'total = T.alloc_buffer((64,), "float32")',
    "for i, k in T.grid(64, 64):",
    '    with T.block("top"):',
    '        vi, vk = T.axis.remap("SR", [i, k])',
    "        with T.init():",
    '            top[vi] = T.float32("-inf")',
    "        top[vi] = T.max(top[vi], x[vi, vk])",
    "for i, j in T.grid(64, 64):",
    '    with T.block("e"):',
    '        vi, vj = T.axis.remap("SS", [i, j])',
    "        e[vi, vj] = T.exp(x[vi, vj] - top[vi])",
    "for i, k in T.grid(64, 64):",
    '    with T.block("total"):',
    '        vi, vk = T.axis.remap("SR", [i, k])',
    "        with T.init():",
    "            total[vi] = T.float32(0)",
    "        total[vi] = total[vi] + e[vi, vk]",
    "for i, j in T.grid(64, 64):",
    '    with T.block("y"):',
    '        vi, vj = T.axis.remap("SS", [i, j])',
    "        y[vi, vj] = e[vi, vj] / total[vi]",
)
AS_TVM_WRITES_IT = SOFTMAX.replace('T.float32("-inf")', "T.float32(-3.4028234663852886e38)")
MOMENTS = loops(
    "norm",
    buffers("x", "y"),
    'total = T.alloc_buffer((64,), "float32")',
    'squares = T.alloc_buffer((64,), "float32")',
    "for i, k in T.grid(64, 64):",
    '    with T.block("moments"):',
    '        vi, vk = T.axis.remap("SR", [i, k])',
    "        with T.init():",
    "            total[vi] = T.float32(0)",
    "            squares[vi] = T.float32(0)",
    "        v = x[vi, vk]",
    "        total[vi] = total[vi] + v",
    "        squares[vi] = squares[vi] + v * v",
    "for i, j in T.grid(64, 64):",
    '    with T.block("y"):',
    '        vi, vj = T.axis.remap("SS", [i, j])',
    "        y[vi, vj] = (x[vi, vj] - total[vi] / T.float32(64)) * squares[vi]",
)
PADDED = loops(
    "padded",
    'x: T.Buffer((64, 62), "float32"), y: T.Buffer((64, 64), "float32")',
    "for i, j in T.grid(64, 64):",
    "    y[i, j] = T.if_then_else(",
    "        T.int64(1) <= j and j < T.int64(63) and T.int64(0) <= j,",
    "        T.max(x[i, j - 1], T.float32(0)),",
    "        T.float32(0.5),",
    "    )",
)
PRODUCT = loops(
    "product",
    buffers("x", "w", "y"),
    "for i, j, k in T.grid(64, 64, 64):",
    '    with T.block("y"):',
    '        vi, vj, vk = T.axis.remap("SSR", [i, j, k])',
    "        with T.init():",
    "            y[vi, vj] = T.float32(0)",
    "        y[vi, vj] = y[vi, vj] + x[vi, vk] * w[vk, vj]",
)
TRANSPOSE = loops(
    "transpose",
    buffers("x", "y"),
    "for i, j in T.grid(64, 64):",
    '    with T.block("y"):',
    '        vi, vj = T.axis.remap("SS", [i, j])',
    "        y[vj, vi] = x[vi, vj]",
)
NAIVE = loops(
    "naive",
    buffers("x", "w", "y"),
    "for i in range(64):",
    "    for j in range(64):",
    "        y[i, j] = T.float32(0)",
    "        for k in range(64):",
    "            y[i, j] = y[i, j] + x[i, k] * w[k, j]",
)
PAIRS = {
    "a function between operators": (
        TWICE
        + graph(
            matrices("x", "y"), "a = R.exp(x)", f"b = {call('twice', 'a')}", "out = R.add(b, y)"
        ),
        graph(
            matrices("x", "y"),
            *("a = R.exp(x)", "b = R.multiply(a, R.const(2.0, 'float32'))", "out = R.add(b, y)"),
        ),
    ),
    "a function between products": (
        TWICE
        + graph(
            matrices("x", "v", "w"),
            *("a = R.matmul(x, v)", f"b = {call('twice', 'a')}", "out = R.matmul(b, w)"),
        ),
        graph(
            matrices("x", "v", "w"),
            *("a = R.matmul(x, v)", "b = R.multiply(a, R.const(2.0, 'float32'))"),
            "out = R.matmul(b, w)",
        ),
    ),
    "a softmax after a product": (
        SOFTMAX + graph(matrices("x", "w"), "a = R.matmul(x, w)", f"out = {call('softmax', 'a')}"),
        graph(matrices("x", "w"), "a = R.matmul(x, w)", "out = R.nn.softmax(a)"),
    ),
    "a softmax from the lowest number on": (
        AS_TVM_WRITES_IT
        + graph(matrices("x", "w"), "a = R.add(x, w)", f"out = {call('softmax', 'a')}"),
        graph(matrices("x", "w"), "a = R.add(x, w)", "out = R.nn.softmax(a)"),
    ),
    "a block of two sums": (
        MOMENTS + graph(matrices("x"), "a = R.exp(x)", f"out = {call('norm', 'a')}"),
        graph(
            matrices("x"),
            *("a = R.exp(x)", "m = R.mean(a, axis=[1], keepdims=True)", "d = R.subtract(a, m)"),
            *("s = R.sum(R.square(a), axis=[1], keepdims=True)", "out = R.multiply(d, s)"),
        ),
    ),
    "padding on a condition": (
        PADDED
        + graph(
            'x: R.Tensor((64, 62), "float32")',
            f"a = {call('padded', 'x')}",
            "out = R.exp(a)",
        ),
        graph(
            'x: R.Tensor((64, 62), "float32")',
            "a = R.nn.pad(R.nn.relu(x), pad_width=[0, 0, 1, 1], pad_value=0.5)",
            "out = R.exp(a)",
        ),
    ),
    "a product before a function": (
        PRODUCT
        + graph(
            matrices("x", "w", "y"),
            *(f"a = {call('product', 'x', 'w')}", "b = R.add(a, y)", "out = R.nn.relu(b)"),
        ),
        graph(
            matrices("x", "w", "y"),
            *("a = R.matmul(x, w)", "b = R.add(a, y)", "out = R.nn.relu(b)"),
        ),
    ),
    "two transposes that cancel": (
        TRANSPOSE
        + graph(
            matrices("x", "y"),
            *(f"a = {call('transpose', 'x')}", "b = R.permute_dims(a)", "out = R.add(b, y)"),
        ),
        graph(matrices("x", "y"), "out = R.add(x, y)"),
    ),
    "loops without blocks": (
        NAIVE + graph(matrices("x", "w"), f"a = {call('naive', 'x', 'w')}", "out = R.nn.relu(a)"),
        graph(matrices("x", "w"), "a = R.matmul(x, w)", "out = R.nn.relu(a)"),
    ),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_a_loop_function_has_the_kernels_of_its_operators(pair: str) -> None:
    written, operators = map(rx.parse, PAIRS[pair])

    has_kernels_of(written, operators, meaning=operators, tolerance=1e-4)


def test_the_report_names_the_functions_that_were_read_and_the_rules_of_their_kernels() -> None:
    explained = rx.explain(rx.parse(PAIRS["a softmax after a product"][0]))

    assert [str(step) for step in explained.steps] == ["read_loops: softmax, main"]
    assert explained.rules["softmax-written-out"] == 1
    assert sum(census(explained.module).kernels.values()) == 1


@pytest.mark.parametrize(
    ("pair", "kernels"),
    [
        ("a softmax after a product", 1),
        ("a function between products", 2),
        ("loops without blocks", 1),
    ],
)
def test_a_function_runs_in_the_kernel_of_a_product(pair: str, kernels: int) -> None:
    best = rx.optimize(rx.parse(PAIRS[pair][0]))

    assert sum(census(best).kernels.values()) == kernels


def test_the_step_can_be_left_out() -> None:
    module = rx.parse(PAIRS["a function between operators"][0])

    with PassContext(disabled_pass=["read_loops"]):
        best = rx.optimize(module)

    assert census(best).operators["call_tir"] == 1


OPAQUE = {
    "parallel loops are a schedule": loops(
        "f",
        buffers("x", "y"),
        "for i in T.parallel(64):",
        "    for j in range(64):",
        "        y[i, j] = x[i, j]",
    ),
    'its attribute "opaque" says that it stays as it is': TWICE.replace("twice", "f").replace(
        "    for i, j", '    T.func_attr({"opaque": True})\n    for i, j', 1
    ),
    'its attribute "anchor" promises a schedule': TWICE.replace("twice", "f").replace(
        "    for i, j",
        '    T.func_attr({"anchor": "elementwise"})\n    for i, j',
        1,
    ),
    "a store on a condition": loops(
        "f",
        buffers("x", "y"),
        "for i, j in T.grid(64, 64):",
        "    if x[i, j] > T.float32(0):",
        "        y[i, j] = x[i, j]",
    ),
    "y is stored where it was read": loops(
        "f",
        buffers("x", "y"),
        "for i, j in T.grid(64, 64):",
        "    y[i, j] = x[i, j] + y[i, j]",
    ),
    "x is read along one axis twice": loops(
        "f",
        buffers("x", "y"),
        "for i, j in T.grid(64, 64):",
        '    with T.block("y"):',
        '        vi, vj = T.axis.remap("SS", [i, j])',
        "        y[vi, vj] = x[vi, vi]",
    ),
}


@pytest.mark.parametrize("reason", OPAQUE)
def test_a_function_that_is_no_operators_stays_and_the_report_says_why(reason: str) -> None:
    main = graph(matrices("x"), f"a = {call('f', 'x')}", "out = R.exp(a)")

    explained = rx.explain(rx.parse(OPAQUE[reason] + main))

    assert explained.opaque == {"f": reason}
    assert f"f stays as it is: {reason}" in str(explained)
    assert census(explained.module).operators["call_tir"] == 1


def test_a_function_that_rules_name_stays() -> None:
    module = rx.parse(PAIRS["a function between operators"][0])
    rule = '(rewrite (R.call_tir "twice" (vec-of x)) (R.add x x) :name "twice-as-sum")'

    explained = rx.explain(module, [rule])

    assert explained.opaque == {"twice": "rules name it"}
    assert explained.rules["twice-as-sum"] == 1
