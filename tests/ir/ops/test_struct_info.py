"""What operators refuse, and what they say of operands that are known in part."""

import pytest

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import call, call_packed, call_tir
from relax_egraph.ir.dims import symbol
from relax_egraph.ir.expr import (
    Attr,
    Call,
    Constant,
    Expr,
    ExternFunc,
    GlobalVar,
    ShapeExpr,
    Tuple,
    Var,
    const,
)
from relax_egraph.ir.op import OPS, complete_attrs, infer, is_pure, op
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)

n, m = symbol("n"), symbol("m")
BOOL = Var("b", tensor((2, 3), "bool"))
INT = Var("i", tensor((2, 3), "int32"))
F32 = Var("x", tensor((2, 3), "float32"))
SYMBOLIC = Var("s", tensor((n, 3), "float32"))
OPAQUE = Var("o", ObjectStructInfo())
SHAPE = Var("shape", ShapeStructInfo((2, 3), 2))
PAIR = Var("pair", TupleStructInfo((tensor((), "bool"),)))


def of(*shape: dims.Dim, dtype: str = "float32") -> Var:
    return Var("y", tensor(shape, dtype))


REFUSED: list[tuple[str, tuple[Expr, ...], dict[str, Attr], str]] = [
    ("add", (F32,), {}, "R.add takes 2 operands (x, y), got 1"),
    ("add", (F32, PAIR), {}, 'R.add: operand y is R.Tuple(R.Tensor((), "bool")), needs a tensor'),
    (
        "reshape",
        (F32, F32),
        {},
        'R.reshape: operand shape is R.Tensor((2, 3), "float32"), needs a shape',
    ),
    (
        "add",
        (F32, INT),
        {},
        'R.add of R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "int32"): '
        "needs operands of one dtype",
    ),
    (
        "add",
        (F32, of(2, 4)),
        {},
        'R.add of R.Tensor((2, 3), "float32"), R.Tensor((2, 4), "float32"): '
        "the shapes do not broadcast",
    ),
    ("exp", (INT,), {}, 'R.exp of R.Tensor((2, 3), "int32"): needs a floating-point tensor'),
    (
        "divide",
        (INT, INT),
        {},
        'R.divide of R.Tensor((2, 3), "int32"): needs a floating-point tensor',
    ),
    ("negative", (BOOL,), {}, 'R.negative of R.Tensor((2, 3), "bool"): needs a tensor of numbers'),
    (
        "subtract",
        (BOOL, BOOL),
        {},
        'R.subtract of R.Tensor((2, 3), "bool"): needs a tensor of numbers',
    ),
    (
        "where",
        (F32, F32, F32),
        {},
        'R.where: operand condition is R.Tensor((2, 3), "float32"), needs a boolean tensor',
    ),
    (
        "sum",
        (F32,),
        {"axis": 2},
        'R.sum of R.Tensor((2, 3), "float32"): axis 2 is outside of rank 2',
    ),
    (
        "sum",
        (F32,),
        {"axis": (0, -2)},
        'R.sum of R.Tensor((2, 3), "float32"): axes [0, -2] repeat an axis',
    ),
    ("sum", (F32,), {"axes": 0}, "R.sum has no attribute 'axes'; it has: axis, keepdims"),
    ("add", (F32, F32), {"axis": 0}, "R.add has no attribute 'axis'; it has: none"),
    ("sum", (F32,), {"axis": "0"}, "R.sum: attribute axis is '0', needs a list of ints"),
    ("sum", (F32,), {"keepdims": 1}, "R.sum: attribute keepdims is 1, needs a bool"),
    ("nn.softmax", (F32,), {"axis": None}, "R.nn.softmax: attribute axis is None, needs an int"),
    ("astype", (F32,), {}, "R.astype needs the attribute 'dtype'"),
    (
        "matmul",
        (F32, F32),
        {},
        'R.matmul of R.Tensor((2, 3), "float32") and R.Tensor((2, 3), "float32"): '
        "needs (…, m, k) and (…, k, n), got k = 3 and 2",
    ),
    (
        "matmul",
        (F32, of()),
        {},
        'R.matmul of R.Tensor((2, 3), "float32") and R.Tensor((), "float32"): '
        "needs operands of rank 1 or more",
    ),
    (
        "matmul",
        (F32, of(3, dtype="float64")),
        {},
        'R.matmul of R.Tensor((2, 3), "float32") and R.Tensor((3,), "float64"): '
        "needs operands of one dtype",
    ),
    (
        "matmul",
        (of(2, 1, 3), of(4, 3, 1)),
        {},
        'R.matmul of R.Tensor((2, 1, 3), "float32") and R.Tensor((4, 3, 1), "float32"): '
        "the leading axes do not broadcast",
    ),
    (
        "permute_dims",
        (F32,),
        {"axes": (0, 0)},
        'R.permute_dims of R.Tensor((2, 3), "float32"): axes [0, 0] are no permutation of 0..1',
    ),
    (
        "reshape",
        (SYMBOLIC, ShapeExpr((dims.add(dims.mul(n, 3), 1),))),
        {},
        'R.reshape of R.Tensor((n, 3), "float32") to (n * 3 + 1,): '
        "n * 3 elements do not fill n * 3 + 1",
    ),
    (
        "broadcast_to",
        (F32, ShapeExpr((4, 3))),
        {},
        'R.broadcast_to of R.Tensor((2, 3), "float32"): it does not broadcast to (4, 3)',
    ),
    (
        "expand_dims",
        (F32,),
        {"axis": (0, 0)},
        'R.expand_dims of R.Tensor((2, 3), "float32"): axes [0, 0] do not fit a result of rank 4',
    ),
    (
        "squeeze",
        (F32,),
        {"axis": 0},
        'R.squeeze of R.Tensor((2, 3), "float32"): axis 0 has extent 2, needs 1',
    ),
    (
        "squeeze",
        (F32,),
        {"axis": 5},
        'R.squeeze of R.Tensor((2, 3), "float32"): axis 5 is outside of rank 2',
    ),
]


@pytest.mark.parametrize(("name", "args", "attrs", "message"), REFUSED)
def test_an_operator_refuses(
    name: str, args: tuple[Expr, ...], attrs: dict[str, Attr], message: str
) -> None:
    with pytest.raises(IllTyped) as refusal:
        call(name, *args, **attrs)

    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (call("add", SYMBOLIC, of(m, 3)), tensor(None, "float32", 2)),
        (call("add", SYMBOLIC, of(1, 3)), tensor((n, 3), "float32")),
        (call("add", SYMBOLIC, OPAQUE), tensor(None, None)),
        (call("add", SYMBOLIC, Var("y", tensor(None, "float32", 3))), tensor(None, "float32", 3)),
        (call("greater", SYMBOLIC, OPAQUE), tensor(None, "bool")),
        (call("sum", OPAQUE), tensor((), None)),
        (call("matmul", SYMBOLIC, of(m, 4)), tensor((n, 4), "float32")),
        (call("reshape", SYMBOLIC, SHAPE), tensor((2, 3), "float32")),
        (call("reshape", SYMBOLIC, OPAQUE), tensor(None, "float32")),
        (call("flatten", SYMBOLIC), tensor((dims.mul(n, 3),), "float32")),
        (call("unique", SYMBOLIC), tensor(None, "float32", 1)),
        (call("shape_of", SYMBOLIC), ShapeStructInfo((n, 3), 2)),
    ],
)
def test_what_is_known_in_part_gives_what_is_known_in_part(
    made: Call, expected: StructInfo
) -> None:
    assert made.struct_info == expected


# --- attributes -----------------------------------------------------------------------


def test_attributes_are_completed_in_the_order_of_definition() -> None:
    complete = complete_attrs(OPS["sum"], {"keepdims": True})

    assert list(complete.items()) == [("axis", None), ("keepdims", True)]


def test_an_int_is_read_as_a_list_of_one_int() -> None:
    assert complete_attrs(OPS["sum"], {"axis": 1})["axis"] == (1,)


def test_an_operator_is_defined_once() -> None:
    def add(x: TensorStructInfo) -> StructInfo:
        return x

    with pytest.raises(ValueError, match=r"^operator 'add' is defined twice$"):
        op()(add)


# --- calls of functions -----------------------------------------------------------------

F = GlobalVar("f", FuncStructInfo((tensor((n, m), "float32"),), tensor((m, 2), "float32")))


def test_the_result_of_a_function_is_in_the_symbols_of_the_caller() -> None:
    made = infer(Call(F, (of(4, symbol("k")),)))

    assert made == tensor((symbol("k"), 2), "float32")


def test_a_symbol_of_the_callee_that_the_arguments_do_not_tell_is_unknown() -> None:
    made = infer(Call(F, (Var("y", tensor(None, "float32", 2)),)))

    assert made == tensor(None, "float32", 2)


def test_what_the_caller_says_of_a_result_goes_first() -> None:
    made = infer(Call(ExternFunc("f"), (), sinfo_args=(tensor((n,), "int8"),)))

    assert made == tensor((n,), "int8")


def test_nothing_is_known_of_what_an_unknown_function_gives() -> None:
    assert infer(Call(OPAQUE, ())) == ObjectStructInfo()


@pytest.mark.parametrize(
    ("made", "pure"),
    [
        (call("add", F32, F32), True),
        (call_packed("f", [], [tensor((), "bool")]), False),
        (call_packed("f", [], [tensor((), "bool")], pure=True), True),
        (Call(F, (F32,)), True),
        (Call(ExternFunc("f"), ()), False),
        (Call(OPAQUE, ()), False),
    ],
)
def test_a_call_is_pure_if_its_callee_says_so(made: Call, pure: bool) -> None:
    assert is_pure(made) is pure


# --- intrinsics -------------------------------------------------------------------------

DPS = (GlobalVar("f"), Tuple((F32,)))


def test_call_tir_gives_what_out_sinfo_says() -> None:
    one = call_tir(GlobalVar("f"), [F32], tensor((n,), "int8"))
    two = call_tir(GlobalVar("f"), [F32], [tensor((n,), "int8"), tensor((), "bool")])

    assert one.struct_info == tensor((n,), "int8")
    assert two.struct_info == TupleStructInfo((tensor((n,), "int8"), tensor((), "bool")))


@pytest.mark.parametrize(
    ("name", "args", "out", "message"),
    [
        ("call_tir", DPS, (), "R.call_tir needs out_sinfo: the struct info of what it returns"),
        (
            "call_tir",
            DPS,
            (tensor(None, "int8"),),
            'R.call_tir: out_sinfo is R.Tensor(dtype="int8"), '
            "needs a tensor of known shape and dtype",
        ),
        (
            "call_tir",
            (ExternFunc("f"), Tuple(())),
            (tensor((), "int8"),),
            "R.call_tir takes a function of the module and a tuple of operands",
        ),
        (
            "call_tir",
            (GlobalVar("f"), F32),
            (tensor((), "int8"),),
            'R.call_tir: the operands are R.Tensor((2, 3), "float32"), needs a tuple',
        ),
        (
            "call_tir",
            (*DPS, const(1)),
            (tensor((), "int8"),),
            "R.call_tir: tir_vars is no shape",
        ),
        (
            "call_dps_packed",
            DPS,
            (tensor((), "int8"),),
            "R.call_dps_packed takes the name of a packed function and a tuple of operands",
        ),
        (
            "call_dps_packed",
            (ExternFunc("f"), F32),
            (tensor((), "int8"),),
            'R.call_dps_packed: the operands are R.Tensor((2, 3), "float32"), needs a tuple',
        ),
        ("call_packed", (F32,), (), "R.call_packed takes the name of a packed function first"),
        (
            "call_pure_packed",
            (),
            (),
            "R.call_pure_packed takes the name of a packed function first",
        ),
    ],
)
def test_an_intrinsic_refuses(
    name: str, args: tuple[Expr, ...], out: tuple[StructInfo, ...], message: str
) -> None:
    with pytest.raises(IllTyped) as refusal:
        infer(Call(OPS[name], args, sinfo_args=out))

    assert str(refusal.value) == message


def test_a_constant_is_of_the_dtype_that_its_value_suggests() -> None:
    made: list[Constant] = [const(1.5), const(2), const(True), const([1, 2], "int8")]

    assert [c.struct_info for c in made] == [
        tensor((), "float32"),
        tensor((), "int32"),
        tensor((), "bool"),
        tensor((2,), "int8"),
    ]


def test_elementwise_results_have_the_shape_that_a_variable_is_for_all_operands() -> None:
    s, r = (Var(name, ShapeStructInfo(None, 2)) for name in "sr")
    a, b = (Var(name, TensorStructInfo(s, "float32", 2)) for name in "ab")
    other = Var("c", TensorStructInfo(r, "float32", 2))

    assert infer(call("exp", a)) == a.struct_info
    assert infer(call("add", a, b)) == a.struct_info
    assert infer(call("multiply", const(2.0, "float32"), a)) == a.struct_info
    assert infer(call("less", a, b)) == TensorStructInfo(s, "bool", 2)
    assert infer(call("add", a, other)) == tensor(None, "float32", 2)
    assert infer(call("add", a, Var("d", tensor(None, "float32", 2)))) == tensor(None, "float32", 2)
