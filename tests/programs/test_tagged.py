"""Programs on tagged values: read, checked, printed, evaluated, optimized and run."""

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import RunError, ScriptError
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.script import parse
from relax_egraph.vm import Tagged, VirtualMachine

LISTS = """
@I.ir_module
class Module:
    @R.function
    def mapped(xs: R.Object) -> R.Object:
        cls = Module
        match xs:
            case R.tagged(1, head, rest):
                n = T.int64()
                first = R.match_cast(head, R.Tensor((n,), "float32"))
                new = R.multiply(R.exp(first), first)
                others = cls.mapped(rest)
                result = R.make_tagged(1, (new, others))
            case _:
                result = R.make_tagged(0, ())
        return result

    @R.function
    def total(xs: R.Object) -> R.Tensor((), "float32"):
        cls = Module
        match xs:
            case R.tagged(1, head, rest):
                n = T.int64()
                first = R.match_cast(head, R.Tensor((n,), "float32"))
                others = cls.total(rest)
                result = R.add(R.sum(first), others)
            case R.tagged(0):
                result = R.const(0.0, "float32")
            case _:
                result = R.const(-1.0, "float32")
        return result

    @R.function
    def main(x: R.Tensor(("m",), "float32"), y: R.Tensor((3,), "float32")):
        cls = Module
        nil = R.make_tagged(0, ())
        one = R.make_tagged(1, (y, nil))
        two = R.make_tagged(1, (R.tanh(x), one))
        new = cls.mapped(two)
        t = cls.total(new)
        k = R.tag_of(new)
        return (new, t, k)
"""


def test_a_list_is_mapped_and_summed() -> None:
    module = parse(LISTS)
    assert_well_formed(module)
    assert_structural_equal(parse(str(module)), module)
    x, y = np.linspace(-1, 1, 5, dtype="float32"), np.ones(3, "float32")

    new, total, tag = evaluate(module, "main", x, y)

    first, second = np.tanh(x) * np.exp(np.tanh(x)), np.exp(y)
    assert (new.tag, new.fields[1].tag, new.fields[1].fields[1], tag) == (1, 1, Tagged(0, ()), 1)
    np.testing.assert_allclose(new.fields[0], first, 1e-6)
    np.testing.assert_allclose(new.fields[1].fields[0], second, 1e-6)
    np.testing.assert_allclose(total, first.sum() + second.sum(), 1e-5)
    for compiled in (rx.build(module), rx.build(rx.optimize(module))):
        same, again, number = VirtualMachine(compiled)["main"](x, y)
        np.testing.assert_allclose(same.fields[0], first, 1e-6)
        np.testing.assert_allclose(same.fields[1].fields[0], second, 1e-6)
        np.testing.assert_allclose(again, total, 1e-5, strict=True)
        assert (number, same.fields[1].fields[1]) == (tag, Tagged(0, ()))


def test_a_tagged_value_is_an_argument() -> None:
    run = VirtualMachine(rx.build(parse(LISTS)))["total"]
    two = np.full(2, 2, "float32")

    assert run(Tagged(1, (two, Tagged(1, (two, Tagged(0, ())))))) == 8
    assert run(Tagged(7, ())) == -1


FIELD = """
@R.function
def main(xs: R.Object):
    a = R.field_of(xs, 1)
    b = R.match_cast(a, R.Tensor((2,), "float32"))
    return b
"""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Tagged(0, ()), "field_of: field 1 of 0"),
        (np.zeros(3), 'field_of: the value is R.Tensor((3,), "float64"), needs a tagged value'),
        (Tagged(0, (0, np.zeros(3, "float32"))), 'needs R.Tensor((2,), "float32")'),
    ],
)
def test_a_field_is_checked_at_run_time(value: object, message: str) -> None:
    with pytest.raises(RunError) as evaluated:
        evaluate(parse(FIELD), "main", value)
    assert message in str(evaluated.value)
    with pytest.raises(RunError):
        VirtualMachine(rx.build(parse(FIELD)))["main"](value)


def _refused(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    with pytest.raises(ScriptError) as error:
        parse(
            f'@R.function\ndef f(x: R.Tensor((2,), "float32"), v: R.Object):\n{body}    return v\n'
        )
    return str(error.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a = R.make_tagged(v, ())", "R.make_tagged: the tag is R.Object, needs a literal"),
        ("a = R.make_tagged(-1, ())", "R.make_tagged: the tag is -1, needs an integer from 0 on"),
        ("a = R.make_tagged(1, x)", "R.make_tagged: the fields are"),
        ("a = R.make_tagged(1)", "R.make_tagged takes a tag and a tuple of fields, got 1 operand"),
        (
            "a = R.tag_of(x)",
            'R.tag_of: the value is R.Tensor((2,), "float32"), needs a tagged value',
        ),
        ("a = R.has_tag(v, v)", "R.has_tag: the tag is R.Object, needs a literal"),
        ("a = R.field_of(v, 1.5)", "R.field_of: the index is 1.5, needs"),
    ],
)
def test_operands_are_checked(line: str, message: str) -> None:
    assert message in _refused(line)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ("match v:", "    case R.tagged(0):", "        a = x"),
            "the last case takes only some values",
        ),
        (
            ("match v:", "    case [p, q]:", "        a = x", "    case _:", "        a = x"),
            "`case [p, q]` is no constructor with names for its fields",
        ),
        (
            (
                "match v:",
                "    case R.tagged(0) if x:",
                "        a = x",
                "    case _:",
                "        a = x",
            ),
            "a case with a guard",
        ),
        (
            (
                "match R.exp(x):",
                "    case R.tagged(0):",
                "        a = x",
                "    case _:",
                "        a = x",
            ),
            "is on no variable",
        ),
        (
            ("match v:", "    case R.tagged(0):", "        a = x", "    case _:", "        b = x"),
            "the branches end with a and with b, need one variable",
        ),
    ],
)
def test_a_match_that_cannot_be_read(lines: tuple[str, ...], message: str) -> None:
    assert message in _refused(*lines)
