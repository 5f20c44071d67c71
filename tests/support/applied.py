"""A single application of an operator: its result, or the message of its refusal."""

from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build
from relax_egraph.errors import IllTyped
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Call, Expr, Tuple, Var
from relax_egraph.ir.op import OPS, infer
from relax_egraph.ir.struct_info import StructInfo, tensor
from tests.support.legalized import Known, symbolic


def of(*extents: Dim, dtype: str | None = "float32") -> Var:
    """A tensor variable of these extents."""
    return Var("x", tensor(extents, dtype))


def inferred(name: str, *args: Expr, **attrs: Attr) -> StructInfo:
    return infer(Call(OPS[name], args, attrs))


def refusal(name: str, *args: Expr, **attrs: Attr) -> str:
    """The message with which the struct-info rule refuses the application."""
    with pytest.raises(IllTyped) as refused:
        inferred(name, *args, **attrs)
    return str(refused.value)


def computed(name: str, *operands: Any, **attrs: Attr) -> Any:
    """The result of the reference."""
    return apply_op(OPS[name], operands, attrs)


def compiled(name: str, *operands: Any, known: Known = symbolic, **attrs: Attr) -> Any:
    """The result of machine code; `known` selects which extents are constants."""
    arrays: list[Any] = []
    params: list[Var] = []

    def param(value: Any) -> Expr:
        if isinstance(value, tuple):
            return Tuple(tuple(map(param, value)))
        arrays.append(value)
        params.append(Var(f"x{len(params)}", tensor(known(value.shape), value.dtype.name)))
        return params[-1]

    applied = Call(OPS[name], tuple(map(param, operands)), attrs)
    bb = BlockBuilder()
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(applied))
    return VirtualMachine(build(bb.get()))["main"](*arrays)


def both(name: str, *operands: Any, **attrs: Attr) -> tuple[Any, Any]:
    """The results of the reference and of machine code."""
    return computed(name, *operands, **attrs), compiled(name, *operands, known=symbolic, **attrs)


def f32(*values: Any) -> Any:
    """An array of float32; a single value gives the array's shape."""
    return np.array(values[0] if len(values) == 1 else values, np.float32)
