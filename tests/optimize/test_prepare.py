"""Modules that are written the naive way, and the careful way: the kernels are the same."""

import pytest

import relax_egraph as rx
from relax_egraph.optimize.prepare import prepare
from relax_egraph.optimize.session import Session
from relax_egraph.passes import PassContext
from tests.support.pairs import has_kernels_of

X = 'x: R.Tensor(("n", 8), "float32")'
Y = 'y: R.Tensor(("n", 8), "float32")'
XY = f"{X}, {Y}"
XW = f'{X}, w: R.Tensor((8, 8), "float32")'


def plain(params: str, *lines: str, result: str = "out", name: str = "main") -> str:
    """A function of plain bindings."""
    return "\n    ".join((f"@R.function\ndef {name}({params}):", *lines, f"return {result}\n"))


def dataflow(params: str, *lines: str, result: str = "out") -> str:
    """The function `main` with all bindings in one dataflow block."""
    block = "\n        ".join(("with R.dataflow():", *lines, f"R.output({result})"))
    return f"@R.function\ndef main({params}):\n    {block}\n    return {result}\n"


def private(name: str, params: str, *lines: str, result: str = "out") -> str:
    """A private function of plain bindings."""
    text = plain(params, *lines, result=result, name=name)
    return text.replace("@R.function", "@R.function(private=True)")


FMA = "p = R.multiply(x, y)", "out = R.add(p, y)"
GELU = (
    *(
        "h = R.multiply(x, R.const(0.5, 'float32'))",
        "s = R.divide(x, R.const(1.4142135, 'float32'))",
    ),
    *("e = R.erf(s)", "o = R.add(e, R.const(1.0, 'float32'))", "out = R.multiply(h, o)"),
)
SOFTMAX = (
    *("m = R.max(x, axis=[-1], keepdims=True)", "d = R.subtract(x, m)", "e = R.exp(d)"),
    *("s = R.sum(e, axis=[-1], keepdims=True)", "out = R.divide(e, s)"),
)
NORM = (
    *("m = R.mean(x, axis=[-1], keepdims=True)", "d = R.subtract(x, m)"),
    *("v = R.mean(R.multiply(d, d), axis=[-1], keepdims=True)",),
    *("r = R.rsqrt(R.add(v, R.const(1e-5, 'float32')))", "out = R.multiply(d, r)"),
)
PAIRS = {
    "bindings outside of a dataflow block": (plain(XY, *FMA), dataflow(XY, *FMA)),
    "an activation outside of a block": (plain(X, *GELU), dataflow(X, *GELU)),
    "a softmax outside of a block": (plain(X, *SOFTMAX), dataflow(X, *SOFTMAX)),
    "a norm outside of a block": (plain(X, *NORM), dataflow(X, *NORM)),
    "two blocks": (
        f"""@R.function
def main({XY}):
    with R.dataflow():
        p = R.multiply(x, y)
        R.output(p)
    with R.dataflow():
        out = R.add(p, y)
        R.output(out)
    return out
""",
        dataflow(XY, *FMA),
    ),
    "a block after a binding": (
        f"""@R.function
def main({XY}):
    p = R.multiply(x, y)
    with R.dataflow():
        out = R.add(p, y)
        R.output(out)
    return out
""",
        dataflow(XY, *FMA),
    ),
    "a function that is called once": (
        private("times", XY, "out = R.multiply(x, y)")
        + plain(XY, "p = cls.times(x, y)", "out = R.add(p, y)"),
        dataflow(XY, *FMA),
    ),
    "a function that is called twice": (
        private("layer", XW, "p = R.matmul(x, w)", "out = R.nn.relu(p)")
        + plain(XW, "a = cls.layer(x, w)", "out = cls.layer(a, w)"),
        dataflow(
            XW,
            *("p = R.matmul(x, w)", "a = R.nn.relu(p)"),
            *("q = R.matmul(a, w)", "out = R.nn.relu(q)"),
        ),
    ),
    "a call within a block": (
        private("times", XY, "out = R.multiply(x, y)")
        + dataflow(XY, "p = cls.times(x, y)", "out = R.add(p, y)"),
        dataflow(XY, *FMA),
    ),
    "functions within functions": (
        private("times", XY, "out = R.multiply(x, y)")
        + private("more", XY, "p = cls.times(x, y)", "out = R.add(p, y)")
        + plain(XY, "out = cls.more(x, y)"),
        dataflow(XY, *FMA),
    ),
    "a function of other symbols": (
        private(
            "layer",
            'a: R.Tensor(("rows", "columns"), "float32")',
            *("p = R.multiply(a, a)", "out = R.add(p, a)"),
        )
        + plain(X, "out = cls.layer(x)"),
        dataflow(X, "p = R.multiply(x, x)", "out = R.add(p, x)"),
    ),
    "a function without shapes": (
        private("times", 'a: R.Tensor(dtype="float32", ndim=2)', "out = R.multiply(a, a)")
        + plain(X, "p = cls.times(x)", "out = R.add(p, x)"),
        dataflow(X, "p = R.multiply(x, x)", "out = R.add(p, x)"),
    ),
    "a function that returns a tuple": (
        private("both", XY, "p = R.multiply(x, y)", "q = R.add(x, y)", result="(p, q)")
        + plain(XY, "t = cls.both(x, y)", "p = t[0]", "q = t[1]", "out = R.add(p, q)"),
        dataflow(XY, "p = R.multiply(x, y)", "q = R.add(x, y)", "out = R.add(p, q)"),
    ),
    "parameters without shapes": (
        plain(f"x: R.Tensor, {Y}", "l = R.exp(x)", "out = R.ewise_add(l, y)"),
        dataflow(XY, "l = R.exp(x)", "out = R.ewise_add(l, y)"),
    ),
    "parameters without dtypes": (
        plain(f'x: R.Tensor(("n", 8)), {Y}', *FMA),
        dataflow(XY, *FMA),
    ),
    "a shape that is computed": (
        plain(
            X,
            "s = R.shape_of(x)",
            "f = R.reshape(x, s)",
            "p = R.multiply(f, x)",
            "out = R.add(p, x)",
        ),
        dataflow(X, "p = R.multiply(x, x)", "out = R.add(p, x)"),
    ),
    "a value that is computed twice": (
        plain(XY, "p = R.exp(x)", "q = R.exp(x)", "a = R.add(p, y)", "out = R.multiply(a, q)"),
        dataflow(XY, "p = R.exp(x)", "a = R.add(p, y)", "out = R.multiply(a, p)"),
    ),
    "a value that nothing reads": (
        plain(XY, "unread = R.exp(x)", *FMA),
        dataflow(XY, *FMA),
    ),
    "a constant in a binding": (
        plain(
            X, "half = R.const(0.5, 'float32')", "p = R.multiply(x, half)", "out = R.add(p, half)"
        ),
        dataflow(
            X,
            "p = R.multiply(x, R.const(0.5, 'float32'))",
            "out = R.add(p, R.const(0.5, 'float32'))",
        ),
    ),
    "an operator of a function, scaled": (
        private("project", XW, "out = R.matmul(x, w)")
        + plain(XW, "p = cls.project(x, w)", "out = R.multiply(p, R.const(0.5, 'float32'))"),
        dataflow(XW, "p = R.matmul(x, w)", "out = R.multiply(p, R.const(0.5, 'float32'))"),
    ),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_naive_modules_have_the_kernels_of_careful_ones(pair: str) -> None:
    naive, careful = map(rx.parse, PAIRS[pair])

    has_kernels_of(naive, careful, meaning=naive, tolerance=1e-5)


NAIVE = rx.parse(
    private("times", XY, "out = R.multiply(x, y)")
    + plain(f"x: R.Tensor, {Y}", "p = R.exp(x)", "q = R.ewise_add(p, y)", "out = cls.times(q, y)")
)


def test_the_report_names_what_each_step_changed() -> None:
    explained = rx.explain(NAIVE)

    assert [str(step) for step in explained.steps] == [
        "refine_parameters: main",
        "inline_by_price: times, main",
        "convert_to_dataflow: main",
    ]
    assert "before planning, refine_parameters changed main" in str(explained)
    assert explained.as_dict()["steps"][0] == {"name": "refine_parameters", "functions": ("main",)}


def test_a_step_can_be_left_out() -> None:
    with PassContext(disabled_pass=["convert_to_dataflow"]):
        explained = rx.explain(NAIVE)

    assert [step.name for step in explained.steps] == ["refine_parameters", "inline_by_price"]
    assert explained.regions == ()


def test_a_function_whose_copies_cost_more_than_its_calls_stays() -> None:
    lines = [f"a{k} = R.sin({'x' if k == 0 else f'a{k - 1}'})" for k in range(1500)]
    vector = 'x: R.Tensor((4,), "float32")'
    module = rx.parse(
        private("long", vector, *lines, result="a1499")
        + plain(vector, "a = cls.long(x)", "b = cls.long(a)", "out = cls.long(b)")
    )

    assert prepare(module, Session()).module.script().count("cls.long(") == 3


def test_messages_name_the_function_whose_call_may_fail() -> None:
    module = rx.parse(
        private("fits", XY, "z: R.Tensor((8, 8), 'float32') = R.add(x, y)", result="z")
        + plain(XY, "out = cls.fits(x, y)")
    )

    assert "cls.fits(" in rx.optimize(module).script()
