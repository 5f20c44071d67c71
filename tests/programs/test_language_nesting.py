"""Programs that are very long or nested very deeply: no limit of Python is met unexplained."""

import re
import sys

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, optimize, parse
from relax_egraph.errors import IllFormed, RunError, ScriptError
from relax_egraph.ir.depth import deep
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.names import unused
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.passes import (
    Pass,
    canonicalize_bindings,
    check_claims,
    eliminate_common_subexpr,
    lambda_lift,
    normalize,
    remove_all_unused,
)
from tests.support.transformed import floats, same_value

DEPTH = 200


def branches(depth: int) -> str:
    """The first branch is taken if the first of `c` is true, the second if the last is."""
    lines = [
        "@R.function",
        f'def main(c: R.Tensor(({depth},), "bool")):',
        '    t = R.take(c, R.const(0, "int64"), axis=0)',
        f'    u = R.take(c, R.const({depth - 1}, "int64"), axis=0)',
        "    if t:",
        '        y = R.const(0, "int64")',
    ]
    for number in range(1, depth):
        lines += ["    elif u:", f'        y = R.const({number}, "int64")']
    return "\n".join([*lines, "    else:", '        y = R.const(-1, "int64")', "    return y"])


def test_branches_nested_deeply_are_read_printed_and_run() -> None:
    module = parse(branches(DEPTH))
    given = np.zeros(DEPTH, np.bool_)

    assert_well_formed(module)
    assert_structural_equal(parse(module.script()), module)
    assert evaluate(module, "main", given) == -1
    assert VirtualMachine(build(optimize(module)))["main"](given) == -1


@pytest.mark.parametrize(
    "transform",
    [
        canonicalize_bindings,
        check_claims,
        eliminate_common_subexpr,
        lambda_lift,
        normalize,
        remove_all_unused,
    ],
    ids=lambda p: p.name,
)
def test_a_pass_goes_as_deep(transform: Pass) -> None:
    module = parse(branches(DEPTH))

    changed = transform(module)

    assert_well_formed(changed)
    same_value(module, changed, np.ones(DEPTH, np.bool_))


def test_a_line_of_branches_is_printed_as_it_is_written() -> None:
    text = parse(branches(3)).script()

    assert re.findall(r"^ +(if|elif|else)", text, re.MULTILINE) == ["if", "elif", "elif", "else"]


def test_a_tuple_of_one_keeps_its_comma_where_lines_are_short() -> None:
    lines = ["@R.function", 'def main(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool")):']
    for depth in range(90):
        indent = "    " + " " * depth
        lines += [f"{indent}if c:", f"{indent} y = R.exp(x)", f"{indent}else:"]
    module = parse("\n".join([*lines, f"{' ' * 94}y = R.negative(x)", "    return y"]))

    assert_structural_equal(parse(module.script()), module)


def test_a_function_of_many_nested_calls_is_read_at_once() -> None:
    lines = "\n".join(["    y = R.exp(R.exp(y))"] * 4000)
    module = parse(f'@R.function\ndef main(y: R.Tensor((2,), "float32")):\n{lines}\n    return y')

    assert_well_formed(module)
    assert module.script().count("R.exp(") == 8000


def test_a_free_name_is_the_first_one_that_is_not_taken() -> None:
    taken, numbers = {"a", "a2"}, dict[str, int]()

    found = [unused("a", taken, numbers) for _ in range(3)]

    assert found == ["a1", "a3", "a4"]
    assert unused("a", taken) == "a5"


def test_what_nests_too_deeply_for_python_is_refused_with_its_place() -> None:
    nested = "(" * 300 + "x" + ")" * 300
    text = f'@R.function\ndef main(x: R.Tensor((2,), "float32")):\n    return {nested}'

    with pytest.raises(ScriptError) as refusal:
        parse(text)

    assert str(refusal.value).startswith("<script>:3:")
    assert "too many nested parentheses" in str(refusal.value)


def test_calls_that_never_end_are_refused() -> None:
    module = parse(
        """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        y = cls.main(x)
        z = R.exp(y)
        return z
"""
    )

    with pytest.raises(RunError) as refusal:
        evaluate(module, "main", floats(2))

    assert str(refusal.value) == "main: calls are nested too deeply"


def test_the_limit_of_python_is_as_before() -> None:
    before = sys.getrecursionlimit()

    def recurse() -> None:
        recurse()

    with pytest.raises(IllFormed, match=r"^too deep$"), deep(IllFormed, "too deep"):
        recurse()

    assert sys.getrecursionlimit() == before
