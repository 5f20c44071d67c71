"""What a call may be given and what it gives: each rule broken alone."""

import pytest

from relax_egraph.ir.block_builder import call_tir
from relax_egraph.ir.expr import (
    Call,
    GlobalVar,
    const,
    shape,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.struct_info import (
    TupleStructInfo,
    tensor,
)
from relax_egraph.ir.well_formed import find_ill_formed
from tests.support.ill_formed import (
    BOOL,
    COND,
    HELPER,
    INFO,
    OUT,
    X,
    bind,
    main,
)

BROKEN: list[tuple[str, IRModule, str]] = [
    # calls of functions
    (
        "missing function",
        main(bind("a", Call(GlobalVar("nowhere"), (X,), struct_info=INFO))),
        "main: a refers to 'nowhere', no function of the module; it has: helper, loops, loud, main",
    ),
    (
        "number of arguments",
        main(bind("a", Call(HELPER, (X, X), struct_info=INFO))),
        "main: a calls cls.helper with 2 arguments, it takes 1",
    ),
    (
        "wrong argument",
        main(bind("a", Call(HELPER, (const(1.0),), struct_info=INFO))),
        'main: a calls cls.helper: argument 0 is R.Tensor((), "float32"), '
        'needs R.Tensor((m, m), "float32")',
    ),
    (
        "inconsistent argument",
        main(bind("a", Call(HELPER, (const([[1.0, 2.0]]),), struct_info=INFO))),
        'main: a calls cls.helper: argument 0 is R.Tensor((1, 2), "float32"), '
        'needs R.Tensor((m, m), "float32")',
    ),
    (
        "wrong result of a function",
        main(bind("a", Call(HELPER, (X,), struct_info=BOOL), BOOL)),
        'main: a is declared as R.Tensor((), "bool"), '
        'but cls.helper gives R.Tensor((n, n), "float32")',
    ),
    (
        "no function",
        main(bind("a", Call(X, (), struct_info=INFO))),
        'main: a calls x, which is R.Tensor((n, 4), "float32"), needs a function',
    ),
    # loop functions
    (
        "operands of call_tir",
        main(bind("a", call_tir(GlobalVar("loops"), [X, X], OUT, shape([1])), OUT)),
        "main: a calls cls.loops with 2 operands, it takes 1",
    ),
    (
        "outputs of call_tir",
        main(
            bind(
                "a",
                call_tir(GlobalVar("loops"), [X], [OUT, OUT], shape([1])),
                TupleStructInfo((OUT, OUT)),
            )
        ),
        "main: a calls cls.loops with 2 outputs, it takes 1",
    ),
    (
        "scalars of call_tir",
        main(bind("a", call_tir(GlobalVar("loops"), [X], OUT), OUT)),
        "main: a calls cls.loops with 0 tir_vars, it takes 1",
    ),
    (
        "operand of call_tir",
        main(bind("a", call_tir(GlobalVar("loops"), [COND], OUT, shape([1])), OUT)),
        'main: a calls cls.loops: operand 0 is R.Tensor((), "bool"), '
        'needs R.Tensor((n, m), "float32")',
    ),
    (
        "output of call_tir",
        main(
            bind(
                "a",
                call_tir(GlobalVar("loops"), [X], tensor((5,), "float32"), shape([1])),
                tensor((5,), "float32"),
            )
        ),
        'main: a calls cls.loops: output 0 is R.Tensor((5,), "float32"), '
        'needs R.Tensor((m,), "float32")',
    ),
    (
        "call_tir of a relax function",
        main(bind("a", call_tir(GlobalVar("helper"), [X], OUT), OUT)),
        "main: a calls cls.helper by R.call_tir: it is no loop function",
    ),
]


@pytest.mark.parametrize(
    ("module", "message"), [b[1:] for b in BROKEN], ids=[b[0].replace(" ", "-") for b in BROKEN]
)
def test_a_wrong_call_is_reported(module: IRModule, message: str) -> None:
    assert find_ill_formed(module) == [message]
