"""Passes on random programs: the laws of the IR and the value stay."""

import pytest

from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.passes import (
    Pass,
    Sequential,
    canonicalize_bindings,
    convert_to_dataflow,
    dead_code_elimination,
    eliminate_common_subexpr,
    inline_private_functions,
    lambda_lift,
    normalize,
)
from relax_egraph.passes.check_claims import check_claims
from relax_egraph.passes.to_non_dataflow import to_non_dataflow
from tests.support.random_loop_calls import by_numpy
from tests.support.random_programs import random_program
from tests.support.random_writer import PACKED, SAMPLE
from tests.support.transformed import equal_values

PASSES = [
    normalize,
    lambda_lift,
    check_claims,
    inline_private_functions,
    eliminate_common_subexpr,
    canonicalize_bindings,
    dead_code_elimination(),
    Sequential([to_non_dataflow, convert_to_dataflow()], name="dataflow_again").as_pass(),
    Sequential(
        [
            inline_private_functions,
            canonicalize_bindings,
            eliminate_common_subexpr,
            canonicalize_bindings,
            dead_code_elimination(),
        ],
        name="together",
    ).as_pass(),
]


@pytest.mark.parametrize("transform", PASSES, ids=lambda p: p.name)
def test_a_random_program_keeps_its_value(transform: Pass) -> None:
    for seed in range(12):
        program = random_program(seed)
        inputs = program.inputs(SAMPLE)
        expected = evaluate(program.module, "main", *inputs, packed=PACKED, prim_func=by_numpy)

        after = transform(program.module)

        assert_well_formed(after)
        equal_values(evaluate(after, "main", *inputs, packed=PACKED, prim_func=by_numpy), expected)
        assert_structural_equal(transform(after), after)
