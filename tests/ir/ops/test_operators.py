"""Every operator on random instances: struct info, reference and machine code agree.

Each instance is taken three ways: with its extents known, with symbols for some of them, and with
nothing known but the kinds of its operands.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build
from relax_egraph.ir import dims
from relax_egraph.ir.agreement import relation, substituted
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float, is_stored, limits
from relax_egraph.ir.expr import Call, Expr, PrimValue, ShapeExpr, Tuple, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import OPS, infer
from relax_egraph.ir.reference import REFERENCE
from relax_egraph.ir.struct_info import (
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.script import parse, print_module
from tests.support.ops import SAMPLERS
from tests.support.ops.case import Case, Draw
from tests.support.widths import dealt

INSTANCES = 50
"""Of each operator, in the long runs."""

FEW, COMPILED = 12, 4
"""In every run, and of so many of these machine code is made."""

DATA_DECIDES = frozenset(
    {
        "unique",
        "nonzero",
        "tensor_to_shape",
        "dynamic_strided_slice",
        "image.non_max_suppression",
    }
)
"""Operators whose result's shape is not known before it is there."""


@dataclass(frozen=True)
class Known:
    """How much is known of extents: those that `symbols` names are symbolic."""

    symbols: Mapping[int, str]
    shapes: bool = True

    def dim(self, extent: int) -> Dim:
        return dims.symbol(self.symbols[extent]) if extent in self.symbols else extent

    def info(self, array: Any) -> TensorStructInfo:
        if not self.shapes:
            return tensor(None, array.dtype.name, array.ndim)
        return tensor(tuple(map(self.dim, array.shape)), array.dtype.name)

    @property
    def values(self) -> dict[str, int]:
        return {name: extent for extent, name in self.symbols.items()}


STATIC = Known({})
UNKNOWN = Known({}, shapes=False)


def symbolic(case: Case, random: Random) -> Known:
    """Some extents above 1 as symbols, equal ones as the same symbol."""
    extents = sorted({d for a in arrays_of(case.operands) for d in a.shape if d != 1})
    return Known({d: f"n{d}" for d in extents if random.random() < 0.7})


def arrays_of(operands: Sequence[Any]) -> Iterator[Any]:
    for operand in operands:
        if isinstance(operand, np.ndarray):
            yield operand
        elif isinstance(operand, tuple):
            yield from arrays_of(operand)


def expression(operand: Any, known: Known, params: list[Var]) -> Expr:
    if isinstance(operand, np.ndarray):
        params.append(Var(f"x{len(params)}", known.info(operand)))
        return params[-1]
    if isinstance(operand, tuple):
        if any(isinstance(o, np.ndarray) for o in operand):
            return Tuple(tuple(expression(o, known, params) for o in operand))
        return ShapeExpr(tuple(map(known.dim, operand)) if known.shapes else operand)
    if isinstance(operand, float):
        return PrimValue(operand, "float64")
    return PrimValue(operand)


def call_of(name: str, case: Case, known: Known) -> tuple[Call, list[Var]]:
    params: list[Var] = []
    args = tuple(expression(o, known, params) for o in case.operands)
    return Call(OPS[name], args, case.attrs), params


def info_of(value: Any) -> StructInfo:
    if isinstance(value, np.ndarray):
        return tensor(value.shape, value.dtype.name)
    if any(isinstance(v, np.ndarray) for v in value):
        return TupleStructInfo(tuple(map(info_of, value)))
    return ShapeStructInfo(value, len(value))


def draws(name: str, count: int) -> Iterator[tuple[Case, Random]]:
    random = Random(name)
    for _ in range(count):
        yield SAMPLERS[name](Draw(random)), random


def assert_near(actual: Any, expected: Any, case: Case) -> None:
    if isinstance(expected, tuple):
        assert isinstance(actual, tuple)
        for a, e in zip(actual, expected, strict=True):
            assert_near(a, e, case)
        return
    if not isinstance(expected, np.ndarray):
        assert actual == expected
        return
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    dtype = expected.dtype.name
    if not is_float(dtype):
        np.testing.assert_array_equal(actual, expected)
        return
    actual, expected = (x.astype(np.float64) for x in (actual, expected))
    finite = expected[np.isfinite(expected)]
    allowed = error(case, dtype) * max(np.abs(finite).max(initial=0), 1)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=allowed)


def error(case: Case, dtype: str) -> float:
    """How far a result of `dtype` may be off, of its largest element."""
    if is_stored(dtype):
        return 2 * float(limits(dtype).eps)
    return case.error or (5e-6 if dtype == "float32" else 1e-13)


def counts(few: int) -> list[Any]:
    """How many instances a test takes: `few`, and all in the long runs."""
    return [few, pytest.param(INSTANCES, marks=pytest.mark.fuzz)]


def test_every_operator_but_the_intrinsics_has_instances() -> None:
    assert set(SAMPLERS) == set(REFERENCE)


@pytest.mark.parametrize("count", counts(FEW))
@pytest.mark.parametrize("name", SAMPLERS)
def test_struct_info_is_what_the_reference_computes(name: str, count: int) -> None:
    for case, random in draws(name, count):
        known = symbolic(case, random)

        result = info_of(apply_op(OPS[name], case.operands, case.attrs))

        static = infer(call_of(name, case, STATIC)[0])
        assert relation(static, result) == "implied" if name in DATA_DECIDES else static == result
        guessed = infer(call_of(name, case, known)[0])
        assert relation(substituted(guessed, known.values), result) == "implied"
        assert relation(infer(call_of(name, case, UNKNOWN)[0]), result) == "implied"


def module_of(name: str, cases: Sequence[tuple[Case, Known]]) -> IRModule:
    bb = BlockBuilder()
    for k, (case, known) in enumerate(cases):
        call, params = call_of(name, case, known)
        with bb.function(f"f{k}", params):
            with bb.dataflow():
                out = bb.emit_output(call)
            bb.emit_func_output(out)
    return bb.get()


@pytest.mark.parametrize("count", counts(FEW))
@pytest.mark.parametrize("name", SAMPLERS)
def test_script_reads_back_what_it_prints(name: str, count: int) -> None:
    cases = [(case, symbolic(case, random)) for case, random in draws(name, count)]

    module = module_of(name, cases)

    assert_structural_equal(parse(print_module(module)), module)


@pytest.mark.parametrize("count", counts(COMPILED))
@pytest.mark.parametrize("name", SAMPLERS)
def test_machine_code_computes_what_the_reference_computes(name: str, count: int) -> None:
    cases: list[tuple[Case, Known]] = []
    for k, (case, random) in enumerate(draws(name, count)):
        some = symbolic(case, random)
        cases.append((case, (some, STATIC, some, UNKNOWN)[k % 4]))
    for target, own in dealt(cases, len(name)):
        wanted = [apply_op(OPS[name], case.operands, case.attrs) for case, _ in own]

        vm = VirtualMachine(build(module_of(name, own), target=target))

        for k, ((case, _), expected) in enumerate(zip(own, wanted, strict=True)):
            assert_near(vm[f"f{k}"](*arrays_of(case.operands)), expected, case)
