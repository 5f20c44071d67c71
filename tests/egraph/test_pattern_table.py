"""The tables of `docs/patterns.md`: each row on a program that it matches, and on another."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import relax_egraph as rx
from relax_egraph.egraph.functions.function import FUNCTIONS
from relax_egraph.ir.struct_info import Shape

TEXT = (Path(__file__).parents[2] / "docs" / "patterns.md").read_text("utf-8")
(PRELUDE,) = re.findall(r"```egg[^\n]*\n(.*?)```", TEXT, re.DOTALL)
ROWS = [
    (construct.replace("\\|", "|"), rule)
    for construct, rule in re.findall(r"^\| (.*?) (?<!\\)\| (.*) \|$", TEXT, re.MULTILINE)
    if construct not in ("DFPattern", "PDL")
]

PROGRAM = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def twice(x: T.Buffer((8, 4), "float32"), y: T.Buffer((8, 4), "float32")):
        for i, j in T.grid(8, 4):
            with T.sblock("twice"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                y[v_i, v_j] = x[v_i, v_j] + x[v_i, v_j]

    @R.function
    def main(
        a: R.Tensor((8, 4), "float32"),
        b: R.Tensor((8, 4), "float32"),
        m: R.Tensor((4, 4), "float32"),
        h: R.Tensor((8, 4, 1), "float64"),
    ):
        cls = Module
        with R.dataflow():
            s = R.sin(a)
            c = R.cos(a)
            k = R.const([[1.0, 2.0, 3.0, 4.0]], "float32")
            t = R.split(a, [2], axis=0)
            f = R.call_dps_packed("f", (a,), out_sinfo=R.Tensor((8, 4), "float32"))
            g = R.call_pure_packed("f", a, sinfo_args=R.Tensor((8, 4), "float32"))
            u = R.call_tir(cls.twice, (a,), out_sinfo=R.Tensor((8, 4), "float32"))
            y = {result}
            R.output(y)
        return y
"""

PROGRAMS = {
    "`wildcard()`": ("R.exp(s)", "s"),
    '`is_op("relax.add")(a, b)`': ("R.add(a, b)", "R.subtract(a, b)"),
    '`is_op("relax.add")(a, a)`': ("R.add(a, a)", "R.add(a, b)"),
    '`p.has_attr({"keepdims": True})`': (
        "R.sum(a, axis=[1], keepdims=True)",
        "R.sum(a, axis=[1], keepdims=False)",
    ),
    '`p.has_dtype("float32")`': ("R.exp(a)", "R.exp(h)"),
    "`p.has_shape((8, 4))`": ("R.exp(a)", "R.exp(m)"),
    "`p.has_ndim(2)`": ("R.exp(a)", "R.exp(h)"),
    "`p.same_shape_as(q)`": ("R.matmul(m, R.exp(m))", "R.matmul(a, m)"),
    "`PrimArrPattern([8, 4])`": ("R.broadcast_to(k, (8, 4))", "R.broadcast_to(k, (2, 4))"),
    "`is_const()`": ("R.add(a, k)", "R.add(a, b)"),
    "`p | q`": ("R.exp(c)", "R.exp(R.tan(a))"),
    "`p & q`": ("R.exp(s)", "(R.exp(s), s)"),
    "`is_tuple([a, b])`": ("R.concat([b, s], axis=0)", "R.concat([b, c], axis=0)"),
    "`UnorderedTuplePattern([a, b])`": ("R.concat([s, b], axis=0)", "R.concat([c, b], axis=0)"),
    "`TupleGetItem(p, 0)`": ("t[0]", "t[1]"),
    '`is_call_tir("twice", [a])`': ("u", "f"),
    '`is_call_dps_packed("f", [a])`': ("f", "u"),
    '`is_op("relax.call_pure_packed")(ExternFuncPattern("f"), a)`': ("g", "f"),
    "`a.used_by(b)`, `a ^ b`": ("R.exp(s)", "R.exp(c)"),
    "`a.only_used_by(b)`, `a >> b`": ("R.exp(s)", "R.add(R.exp(s), s)"),
    "`dominates(parent, path, child)`": ("R.exp(R.tan(R.cos(s)))", "R.exp(R.add(R.tan(s), s))"),
    "a `PatternContext` of several results": ("(s, c)", "s"),
    "a callback that decides": ("R.exp(m)", "R.exp(a)"),
    '`pdl.operation "exp"(%x)`': ("R.exp(a)", "s"),
    "`pdl.operand`": ("R.add(a, b)", "s"),
    "`pdl.operand : %type`": ("R.exp(a)", "R.exp(h)"),
    "`pdl.operands`": ("R.concat([a, b], axis=0)", "R.concat([a, b, s], axis=0)"),
    "`pdl.range %a, %b`": ("R.concat([a, b], axis=0)", "R.concat([a, b, s], axis=0)"),
    "`pdl.attribute`": ("R.sum(a, axis=[1], keepdims=True)", "R.sum(a, keepdims=True)"),
    "`pdl.attribute = true`": (
        "R.sum(a, axis=[1], keepdims=True)",
        "R.sum(a, axis=[1], keepdims=False)",
    ),
    "`pdl.type`": ('R.add(a, R.astype(R.argsort(b), "float32"))', "R.add(a, b)"),
    "`pdl.result 0 of %op`": ("t[0]", "t[1]"),
    "an operand twice": ("R.add(a, a)", "R.add(a, b)"),
    '`pdl.apply_native_constraint "is_square"(%x)`': ("R.exp(m)", "R.exp(a)"),
    '`pdl.apply_native_rewrite "inverse"(%p)`': (
        "R.permute_dims(a, [1, 0])",
        "R.permute_dims(h, [1, 2, 0])",
    ),
    "`pdl.replace %op with (%value)`": ("R.exp(a)", "s"),
    "`pdl.rewrite` of several operations": ("R.exp(a)", "s"),
}
"""By row, the result of a program that its pattern matches, and of one that it does not."""


def rule_of(cell: str) -> str:
    """The rule of a row: as it is written, or one that replaces its pattern by a call."""
    first, *premises = re.findall(r"`(.*?)`", cell)
    if first.startswith(("(rule ", "(rewrite ")):
        return first
    call = '(R.call_pure_packed "hit" (vec-of x))'
    return f"(rewrite {first} {call} :when ({' '.join(premises)}) :demand)"


@pytest.fixture(autouse=True)
def square() -> Iterator[None]:
    @rx.rules.function
    def is_square(s: Shape) -> bool:
        """Whether a shape is that of a square matrix."""
        return len(s) == 2 and s[0] == s[1]

    yield
    del FUNCTIONS["is-square"]


def test_every_row_has_programs_or_a_reason() -> None:
    without = [construct for construct, cell in ROWS if cell.startswith("none")]
    with_programs = [construct for construct, _ in ROWS if construct not in without]

    assert sorted(with_programs) == sorted(PROGRAMS)
    assert len(without) == 6


@pytest.mark.parametrize(("construct", "cell"), [row for row in ROWS if row[0] in PROGRAMS])
def test_a_row_of_the_table_says_what_it_says(construct: str, cell: str) -> None:
    rules = [PRELUDE + rule_of(cell)]
    prices = rx.Prices(calls={"hit": 0.0})
    yes, no = (rx.parse(PROGRAM.format(result=result)) for result in PROGRAMS[construct])

    assert '"hit"' in rx.optimize(yes, rules, prices=prices, isolate=False).script()
    assert '"hit"' not in rx.optimize(no, rules, prices=prices, isolate=False).script()
