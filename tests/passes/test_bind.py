"""Parameters that become constants, symbols that become numbers."""

import numpy as np
import pytest

from relax_egraph.build import build
from relax_egraph.errors import IllFormed, IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Constant, Function
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.passes import Pass, bind_params, bind_symbolic_vars
from relax_egraph.script import parse
from relax_egraph.vm import VirtualMachine
from tests.support.transformed import floats

LINEAR = """
@R.function
def main(x: R.Tensor(("n", "k"), "float32"), w: R.Tensor(("k", "m"), "float32")):
    n = T.int64()
    m = T.int64()
    with R.dataflow():
        lv = R.matmul(x, w)
        lv1 = R.zeros(R.shape([n, m]), dtype="float32")
        gv = R.maximum(lv, lv1)
        R.output(gv)
    return gv
"""

BOUND = """
metadata = {"relax.expr.Constant": [R.const([[1, 2], [3, 4], [5, 6]], "float32")]}
@R.function
def main(x: R.Tensor(("n", 3), "float32")):
    n = T.int64()
    with R.dataflow():
        lv = R.matmul(x, metadata["relax.expr.Constant"][0])
        lv1 = R.zeros(R.shape([n, 2]), dtype="float32")
        gv = R.maximum(lv, lv1)
        R.output(gv)
    return gv
"""

W = np.array([[1, 2], [3, 4], [5, 6]], np.float32)


def refused(transform: Pass, module: IRModule, kind: type[Exception] = IllFormed) -> str:
    with pytest.raises(kind) as error:
        transform(module)
    return str(error.value)


# --- parameters -------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [W, Constant(W)], ids=["array", "constant"])
def test_a_bound_parameter_is_a_constant_and_tells_its_symbols(weight: object) -> None:
    module = parse(LINEAR)

    after = bind_params("main", {"w": weight})(module)  # pyright: ignore[reportArgumentType]  # it is an array or a constant

    assert_structural_equal(after, parse(BOUND))
    assert_well_formed(after)
    x = floats(4, 3)
    np.testing.assert_array_equal(evaluate(after, "main", x), evaluate(module, "main", x, W))
    np.testing.assert_allclose(
        VirtualMachine(build(after))["main"](x), np.maximum(x @ W, 0), rtol=1e-5
    )


def test_a_parameter_is_named_by_itself_too_and_other_functions_stay() -> None:
    module = parse(f"@I.ir_module\nclass Module:\n{_indented(LINEAR)}\n{_indented(OTHER)}")
    function = module["main"]
    assert isinstance(function, Function)

    after = bind_params("main", {function.params[1]: W})(module)

    assert_structural_equal(IRModule({"main": after["main"]}), parse(BOUND))
    assert after["other"] is module["other"]


OTHER = """
@R.function
def other(w: R.Tensor((2,), "float32")):
    return w
"""


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.strip().splitlines())


def test_a_tuple_is_bound_field_by_field() -> None:
    module = parse(
        """
@R.function
def main(x: R.Tensor((2,), "float32"), p: R.Tuple(R.Tensor(("k",), "float32"), R.Tensor)):
    a = p[0]
    b = R.add(x, a)
    return (b, p[1])
"""
    )
    one, two = np.ones(2, np.float32), np.arange(3)

    after = bind_params("main", {"p": (one, two)})(module)

    assert_well_formed(after)
    found = evaluate(after, "main", floats(2))
    np.testing.assert_array_equal(found[0], floats(2) + 1)
    np.testing.assert_array_equal(found[1], two)


def test_what_cannot_be_bound_is_refused() -> None:
    module = parse(LINEAR)
    calling = parse(
        f"@I.ir_module\nclass Module:\n{_indented(LINEAR)}\n"
        + _indented(
            """
@R.function
def outer(x: R.Tensor((2, 2), "float32")):
    cls = Module
    y = cls.main(x, x)
    return y
"""
        )
    )
    static = parse(LINEAR.replace('("k", "m")', '(3, "m")').replace('("n", "k")', '("n", 3)'))
    divided = parse(
        """
@R.function
def main(x: R.Tensor(("n // 2",), "float32"), y: R.Tensor(("n",))):
    return x
"""
    )
    unknown = parse(
        """
@R.function
def main(x: R.Tensor(("n * 2",), "float32"), y: R.Tensor(("n",)), z: R.Tensor(("n",))):
    return x
"""
    )

    assert refused(bind_params("mian", {}), module) == (
        "bind_params: no function 'mian'; there are: main"
    )
    assert refused(bind_params("main", {"b": W}), module) == (
        "bind_params: main has no parameter 'b'; it has: x, w"
    )
    function = module["main"]
    assert isinstance(function, Function)
    assert refused(bind_params("main", {"w": W, function.params[1]: W}), module) == (
        "bind_params: parameter w of main is given twice"
    )
    assert refused(bind_params("main", {"w": W}), calling) == (
        "bind_params: outer calls main, which would take fewer arguments"
    )
    assert refused(bind_params("main", {"w": W.T}), static, IllTyped) == (
        'bind_params: parameter w of main is R.Tensor((3, m), "float32") with m = 3, '
        'got R.Tensor((2, 3), "float32")'
    )
    assert refused(bind_params("main", {"w": W.astype("float64")}), static, IllTyped) == (
        'bind_params: parameter w of main is R.Tensor((3, m), "float32") with m = 2, '
        'got R.Tensor((3, 2), "float64")'
    )
    two = {"y": np.zeros(2), "z": np.zeros(3)}
    assert refused(bind_params("main", two), unknown, IllTyped) == (
        "bind_params: parameter z of main is R.Tensor((n,)) with n = 2, "
        'got R.Tensor((3,), "float64")'
    )
    assert refused(bind_params("main", {"x": np.zeros(4, np.float32)}), divided) == (
        'bind_params: parameter x of main is R.Tensor((n // 2,), "float32"): '
        "an array does not determine n"
    )


def test_an_extent_that_is_computed_of_a_symbol_tells_it() -> None:
    module = parse(
        """
@R.function
def main(x: R.Tensor(("n * 2",), "float32"), y: R.Tensor(("n",), "float32")):
    return (x, y)
"""
    )

    after = bind_params("main", {"x": np.zeros(4, np.float32)})(module)

    function = after["main"]
    assert isinstance(function, Function)
    assert [str(p.struct_info) for p in function.params] == ['R.Tensor((2,), "float32")']


# --- symbols ----------------------------------------------------------------------------


def test_symbols_become_numbers_everywhere() -> None:
    module = parse(LINEAR)

    after = bind_symbolic_vars({"n": 4, "k": 3})(module)

    expected = """
@R.function
def main(x: R.Tensor((4, 3), "float32"), w: R.Tensor((3, "m"), "float32")):
    m = T.int64()
    with R.dataflow():
        lv = R.matmul(x, w)
        lv1 = R.zeros(R.shape([4, m]), dtype="float32")
        gv = R.maximum(lv, lv1)
        R.output(gv)
    return gv
"""
    assert_structural_equal(after, parse(expected))
    assert_well_formed(after)
    assert "k" not in after.script().replace("Tensor", "").split("def main")[1].split()


def test_symbols_become_other_dimensions() -> None:
    after = bind_symbolic_vars({"n": dims.mul(dims.symbol("m"), 2)}, "main")(parse(LINEAR))

    expected = """
@R.function
def main(x: R.Tensor(("m * 2", "k"), "float32"), w: R.Tensor(("k", "m"), "float32")):
    m = T.int64()
    with R.dataflow():
        lv = R.matmul(x, w)
        lv1 = R.zeros(R.shape([m * 2, m]), dtype="float32")
        gv = R.maximum(lv, lv1)
        R.output(gv)
    return gv
"""
    assert_structural_equal(after, parse(expected))


def test_what_is_known_with_the_numbers_is_inferred_anew() -> None:
    module = parse(
        """
@R.function
def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m", 4), "float32")):
    a = R.add(x, y)
    b = R.exp(a)
    return b
"""
    )

    after = bind_symbolic_vars({"n": 1})(module)

    expected = """
@R.function
def main(
    x: R.Tensor((1, 4), "float32"), y: R.Tensor(("m", 4), "float32")
) -> R.Tensor("float32", ndim=2):
    a = R.add(x, y)
    b = R.exp(a)
    return b
"""
    function = after["main"]
    assert isinstance(function, Function)
    assert str(function.body.struct_info) == 'R.Tensor((m, 4), "float32")'
    assert_structural_equal(after, parse(expected))


def test_casts_tir_vars_and_local_functions_are_specialised_and_loops_stay_generic() -> None:
    text = """
@I.ir_module
class Module:
    @T.prim_func
    def copy(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
        n = T.int64()
        for i in range(n):
            y[i] = x[i]
    @R.function
    def main(x: R.Tensor((N,), "float32"), u: R.Tensor("float32", ndim=1)):
        DECLARE
        cls = Module
        v = R.match_cast(u, R.Tensor((N,), "float32"))
        a = R.call_tir(cls.copy, (v,), out_sinfo=R.Tensor((N,), "float32"))
        @R.function
        def f(z: R.Tensor((N,), "float32")) -> R.Tensor((N,), "float32"):
            b = R.add(z, x)
            return b
        b = f(a)
        return b
"""
    generic = text.replace("R.Tensor((N,)", 'R.Tensor(("n",)', 1).replace("N,", "n,")
    generic = generic.replace("DECLARE", "n = T.int64()")
    special = text.replace("N,", "3,").replace("        DECLARE\n", "")

    after = bind_symbolic_vars({"n": 3}, "main")(parse(generic))

    assert_structural_equal(after, parse(special))
    assert_well_formed(after)
    vm = VirtualMachine(build(after))
    np.testing.assert_array_equal(vm["main"](floats(3), floats(3)), floats(3) * 2)


def test_symbols_that_cannot_be_bound_are_refused() -> None:
    module = parse(LINEAR)
    m = dims.symbol("m")

    assert refused(bind_symbolic_vars({"z": 1}), module) == (
        "bind_symbolic_vars: the module has no symbol 'z'; it has: k, m, n"
    )
    assert refused(bind_symbolic_vars({"n": 1}, "f"), module) == (
        "bind_symbolic_vars: no function 'f'; there are: main"
    )
    assert refused(bind_symbolic_vars({"m": dims.add(m, 1)}), module) == (
        "bind_symbolic_vars: nothing binds m of main: no parameter has it alone as a dimension"
    )


def test_a_number_that_makes_an_operator_ill_typed_is_refused() -> None:
    module = parse(
        """
@R.function
def main(x: R.Tensor(("n", 3), "float32"), y: R.Tensor(("m", 3), "float32")):
    a = R.add(x, y)
    return a
"""
    )

    assert refused(bind_symbolic_vars({"n": 2, "m": 3}), module, IllTyped) == (
        'R.add of R.Tensor((2, 3), "float32"), R.Tensor((3, 3), "float32"): '
        "the shapes do not broadcast"
    )
