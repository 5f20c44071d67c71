"""Programs that write tensors in place: every reading of them agrees on what is changed."""

import textwrap
from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, optimize, parse
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.mutation import written_variables
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.loading import load
from relax_egraph.passes import (
    Pass,
    canonicalize_bindings,
    convert_to_dataflow,
    eliminate_common_subexpr,
    fold_constant,
    inline_private_functions,
    lambda_lift,
)
from relax_egraph.tir.interpret import run_in_place
from tests.support.transformed import equal_values

MODULE = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(x: T.Buffer(("n",), "float32")):
        T.func_attr({{"num_outputs": 0}})
        for i in range(n):
            with T.block("double"):
                v = T.axis.spatial(n, i)
                x[v] = x[v] * T.float32(2)
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool")):
        n = T.int64()
{body}
"""

PROGRAMS = {
    "a-constant": """
        k = R.const([1.0, 2.0, 3.0], "float32")
        a = R.call_tir_inplace(cls.double, (k,), [0], R.Tensor((3,), "float32"))
        return (a, k)
    """,
    "a-constant-of-a-branch": """
        if c:
            k = R.const([1.0, 2.0, 3.0], "float32")
        else:
            k = R.exp(R.const([1.0, 2.0, 3.0], "float32"))
        a = R.call_tir_inplace(cls.double, (k,), [0], R.Tensor((3,), "float32"))
        return (a, k)
    """,
    "what-could-be-folded": """
        k = R.add(R.const([1.0, 2.0, 3.0], "float32"), R.const(1.0, "float32"))
        a = R.call_tir_inplace(cls.double, (k,), [0], R.Tensor((3,), "float32"))
        return (a, k)
    """,
    "a-reshaped-parameter": """
        v = R.reshape(x, R.shape([1, n]))
        w = R.flatten(v)
        s = R.strided_slice(x, [0], [0], [n])
        a = R.call_tir_inplace(cls.double, (w,), [0], R.Tensor((n,), "float32"))
        b = R.call_tir_inplace(cls.double, (s,), [0], R.Tensor((n,), "float32"))
        return (a, b, x, v, w, s)
    """,
    "what-is-equal-to-the-operand": """
        with R.dataflow():
            u = R.astype(x, "float32")
            w = R.add(u, R.const(0.0, "float32"))
            R.output(u, w)
        a = R.call_tir_inplace(cls.double, (w,), [0], R.Tensor((n,), "float32"))
        return (x, u, w, a)
    """,
    "one-of-two-equal-tensors": """
        d = R.exp(x)
        e = R.exp(x)
        a = R.call_tir_inplace(cls.double, (e,), [0], R.Tensor((n,), "float32"))
        f = R.exp(x)
        return (d, e, a, f)
    """,
    "another-name-by-a-function": """
        d = R.exp(x)
        @R.function
        def same(z: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            return z
        e = same(d)
        f = R.exp(x)
        a = R.call_tir_inplace(cls.double, (e,), [0], R.Tensor((n,), "float32"))
        return (d, e, a, f)
    """,
    "what-a-closure-captured": """
        d = R.exp(x)
        e = R.exp(x)
        @R.function(pure=False)
        def twice() -> R.Tensor(("n",), "float32"):
            r = R.call_tir_inplace(cls.double, (d,), [0], R.Tensor((n,), "float32"))
            return r
        a = twice()
        b = twice()
        return (a, b, d, e)
    """,
}

PASSES = (
    canonicalize_bindings,
    convert_to_dataflow(1),
    eliminate_common_subexpr,
    fold_constant,
    inline_private_functions,
    lambda_lift,
)


def program(name: str) -> IRModule:
    body = textwrap.indent(textwrap.dedent(PROGRAMS[name]).strip("\n"), " " * 8)
    module = parse(MODULE.format(body=body))
    assert_well_formed(module)
    return module


def arguments() -> tuple[Any, Any]:
    return np.array([0.5, -1.0, 2.0], np.float32), np.asarray(True)


def evaluated(module: IRModule) -> Any:
    args = arguments()
    return evaluate(module, "main", *args, prim_func=run_in_place), *args


def built(module: IRModule) -> Any:
    args = arguments()
    return VirtualMachine(build(module))["main"](*args), *args


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_machine_changes_what_evaluation_changes(name: str, tmp_path: Any) -> None:
    module = program(name)
    expected = evaluated(module)
    saved = tmp_path / "saved.rxe"

    build(module).save(saved)
    args = arguments()
    loaded = VirtualMachine(load(saved))["main"](*args), *args

    for found in (built(module), loaded, evaluated(optimize(module)), built(optimize(module))):
        for part, wanted in zip(flat(found), flat(expected), strict=True):
            np.testing.assert_allclose(part, wanted, rtol=1e-6, strict=True)


@pytest.mark.parametrize("transform", PASSES, ids=lambda p: p.name)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_pass_changes_no_value(name: str, transform: Pass) -> None:
    module = program(name)

    after = transform(module)

    assert_well_formed(after)
    equal_values(evaluated(after), evaluated(module))


def test_a_constant_of_the_module_is_never_written() -> None:
    module, before = program("a-constant"), program("a-constant")
    executable = build(module)

    results = [VirtualMachine(executable)["main"](*arguments()) for _ in range(2)]

    equal_values(results[1], results[0])
    assert_structural_equal(module, before)
    np.testing.assert_array_equal(results[0][0], [2, 4, 6])
    np.testing.assert_array_equal(results[0][1], [1, 2, 3])


def test_a_read_only_argument_is_not_written() -> None:
    module = program("a-reshaped-parameter")
    x, c = arguments()
    x.flags.writeable = False

    VirtualMachine(build(module))["main"](x, c)

    np.testing.assert_array_equal(x, arguments()[0])


def test_written_are_all_names_of_a_tensor() -> None:
    module = program("another-name-by-a-function")
    functions = dict(module.relax_functions())

    written = written_variables(functions["main"], module)

    assert sorted(v.name for v in written) == ["a", "d", "e", "same"]


def flat(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        fields: tuple[Any, ...] = value
        return [x for field in fields for x in flat(field)]
    return [value]
