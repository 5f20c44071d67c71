"""The intrinsics of tagged values: values of algebraic data types.

A tagged value is ``R.Object``: its type may be recursive, as that of a list, and different
constructors have different fields.  A field is ``R.Object``, too; ``R.match_cast`` says what it is,
and the machine checks that.
"""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.expr import Call, Expr, PrimValue, Tuple
from relax_egraph.ir.op import intrinsic
from relax_egraph.ir.struct_info import ObjectStructInfo, PrimStructInfo, StructInfo, tensor


@intrinsic()
def make_tagged(call: Call) -> StructInfo:
    """``R.make_tagged(tag, fields)``: a value of constructor `tag`, with a tuple of fields."""
    tag, fields = _operands("make_tagged", call, "a tag and a tuple of fields", 2)
    _number("make_tagged", "tag", tag)
    if not isinstance(fields, Tuple):
        raise IllTyped(f"R.make_tagged: the fields are {fields.struct_info}, needs a tuple")
    return ObjectStructInfo()


@intrinsic()
def tag_of(call: Call) -> StructInfo:
    """``R.tag_of(value)``: the number of the constructor of a tagged value."""
    _value("tag_of", *_operands("tag_of", call, "a tagged value", 1))
    return PrimStructInfo("int64")


@intrinsic()
def has_tag(call: Call) -> StructInfo:
    """``R.has_tag(value, tag)``: whether a tagged value is of constructor `tag`, as a condition."""
    value, tag = _operands("has_tag", call, "a tagged value and a tag", 2)
    _value("has_tag", value)
    _number("has_tag", "tag", tag)
    return tensor((), "bool")


@intrinsic()
def field_of(call: Call) -> StructInfo:
    """``R.field_of(value, index)``: a field of a tagged value."""
    value, index = _operands("field_of", call, "a tagged value and the index of a field", 2)
    _value("field_of", value)
    _number("field_of", "index", index)
    return ObjectStructInfo()


def _operands(name: str, call: Call, wanted: str, count: int) -> tuple[Expr, ...]:
    if len(call.args) != count:
        given = "1 operand" if len(call.args) == 1 else f"{len(call.args)} operands"
        raise IllTyped(f"R.{name} takes {wanted}, got {given}")
    return tuple(call.args)


def _value(name: str, value: Expr) -> None:
    if not isinstance(value.struct_info, ObjectStructInfo):
        raise IllTyped(f"R.{name}: the value is {value.struct_info}, needs a tagged value")


def _number(name: str, what: str, number: Expr) -> None:
    if not isinstance(number, PrimValue):
        raise IllTyped(f"R.{name}: the {what} is {number.struct_info}, needs a literal")
    if not isinstance(number.value, int) or number.value < 0:
        raise IllTyped(f"R.{name}: the {what} is {number.value}, needs an integer from 0 on")
