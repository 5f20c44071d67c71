"""Proofs of optimized programs: chains of rules from the region to the program that was chosen."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from bench.resnet import basic_block
from bench.transformer import Sizes, encoder
from relax_egraph import ir
from relax_egraph.egraph.engine import RuleBook
from relax_egraph.egraph.recording.template_reader import rule_templates
from relax_egraph.errors import ProofError
from relax_egraph.ir.tolerance import tolerance_of
from relax_egraph.optimize.explanation import RegionReport
from relax_egraph.proof.prove import prove
from relax_egraph.proof.trace import Proof, Trace
from tests.support.exported import module_of


def proof_of(region: RegionReport) -> Proof:
    """The proof of a region, of which every trace leads to its result."""
    outputs = [f"out{k}" for k in range(len(region.view.roots))]
    found = prove(region, outputs)
    for trace in found.traces:
        *_, last = trace.programs()
        assert last is trace.result
    return found


def traces_of(module: rx.IRModule, rules: Sequence[str] = (), **how: Any) -> list[Trace]:
    regions = rx.explain(module, rules, **how).regions
    return [trace for region in regions for trace in proof_of(region).traces]


def rules_of(trace: Trace) -> list[str]:
    return [step.rule for step in trace.steps]


def test_a_chain_of_rules_leads_to_the_program() -> None:
    module = module_of(
        "x(n, 4)",
        """lv = R.add(x, c(0.0))
        lv1 = R.nn.relu(lv)
        gv = R.multiply(lv1, c(1.0))""",
    )

    (trace,) = traces_of(module)

    assert rules_of(trace) == ["multiply-one", "add-zero", "lower-nn.relu"]
    assert [term.op for term in trace.programs()] == ["multiply", "nn.relu", "nn.relu", "store"]
    assert [trace.rules[name].float_class for name in rules_of(trace)[:2]] == ["exact", "exact"]


def test_kernels_are_fused_one_by_one() -> None:
    (trace,) = traces_of(module_of("x(n, 4)", "gv = R.exp(R.sin(x))"))

    assert rules_of(trace) == ["lower-sin", "lower-exp", "load-of-store"]


def test_constants_of_one_value_are_one() -> None:
    module = module_of("x(n, 4)", "gv = R.where(R.less(x, c(0.0)), c(0.0), x)")

    (trace,) = traces_of(module)

    assert {"const-from-value", "relu-from-less"} <= set(rules_of(trace))


def test_what_is_computed_of_constants_is_a_constant_of_the_program() -> None:
    module = module_of(
        "x(4, 1)",
        """lv = R.maximum(R.const(1, "int8"), R.const(2, "int8"))
        gv = R.index_tensor(x, (lv,))""",
    )

    (trace,) = traces_of(module)

    assert set(rules_of(trace)) <= {"const-from-value", "lower-index_tensor"}


def test_every_output_has_a_trace() -> None:
    module = module_of(
        "x(n, 4), y(n, 4)",
        """gv = R.multiply(R.add(x, y), c(1.0))
        gv1 = R.nn.relu(gv)""",
        ("gv", "gv1"),
    )

    traces = traces_of(module)

    assert [trace.output for trace in traces] == ["out0", "out1"]
    assert all("multiply-one" in rules_of(trace) for trace in traces)


def test_what_a_user_wrote_is_in_the_chain() -> None:
    rules = """
        (relation mirrored-value (Tensor Tensor))
        (rule ((= t (R.negative x))) ((mirrored-value t x)) :name "mirrored")
        (rule ((= t (R.cos y)) (mirrored-value y x)) ((union t (R.cos x))) :name "cos-is-even")
    """

    (trace,) = traces_of(module_of("x(n, 4)", "gv = R.cos(R.negative(x))"), [rules])

    assert rules_of(trace) == ["cos-is-even", "lower-cos"]


def test_a_premise_that_values_are_equal_has_a_chain_of_its_own() -> None:
    rules = """
        (rewrite (R.exp (R.negative x)) (R.exp x) :name "made-up")
        (rule ((= t (R.exp x)) (= t (R.exp y))) ((union x y)) :name "exp-is-one-to-one")
    """
    module = module_of(
        "x(n, 4)",
        """lv = R.negative(x)
        gv = R.sin(lv)
        gv1 = R.exp(lv)""",
        ("gv", "gv1"),
    )

    trace, _ = traces_of(module, [rules])

    first, *_ = trace.steps
    assert (first.rule, [step.rule for step in first.given]) == ("exp-is-one-to-one", ["made-up"])
    assert rules_of(trace) == ["exp-is-one-to-one", "lower-sin"]


def test_weights_within_a_tolerance_are_proven_over_both_runs() -> None:
    w = np.random.default_rng(0).standard_normal((512, 512)).astype(np.float32)
    x = ir.Var("x", ir.tensor((1, 512), "float32"))
    builder = ir.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(ir.call("matmul", x, ir.const(w)))
        builder.emit_func_output(out)

    explained = rx.explain(builder.get(), tolerance=0.02)
    (region,) = explained.regions

    assert len(region.runs) == 2
    (trace,) = proof_of(region).traces
    assert any(trace.rules[n].ruleset == "weights" for n in rules_of(trace) if n in trace.rules)


def test_an_encoder_layer_is_proven() -> None:
    (trace,) = traces_of(encoder(Sizes(layers=1)))

    rewrites = Counter(name for name in rules_of(trace) if not name.startswith(("lower-", "load-")))
    # Norms are written out in the kernels of the products before them, which reads a value twice.
    assert rewrites["part-as-slice"] == 6
    assert rewrites["attention-of-heads"] == rewrites["gelu-from-erf"] == 2
    assert rewrites["divide-by-broadcast-root"] == 3
    assert rules_of(trace)[0] in rewrites  # what makes kernels comes after all of these


def test_a_residual_block_of_convolutions_is_proven() -> None:
    assert all(trace.steps for trace in traces_of(basic_block(1, 16, 8)))


def test_what_rules_did_is_counted() -> None:
    module = module_of("x(n, 4)", "gv = R.nn.relu(R.add(x, c(0.0)))")
    (region,) = rx.explain(module).regions

    firings = proof_of(region).firings

    matches = Counter[str]()
    for firing in firings:
        matches[firing.rule] += firing.matches
    reported = region.saturation.matches
    assert matches["add-commutes"] == reported["add-commutes"]
    assert matches["add-zero"] == reported["add-zero"]
    assert next(f.nodes for f in firings if f.rule == "add-commutes" and f.iteration == 1) == 1
    assert sum(f.nodes for f in firings if f.rule == "add-zero") == 0


def test_a_program_that_no_rule_leads_to_is_refused() -> None:
    (region,) = rx.explain(module_of("x(n, 4)", "gv = R.nn.relu(x)")).regions
    (other,) = rx.explain(module_of("x(n, 4)", "gv = R.exp(x)")).regions

    with pytest.raises(ProofError) as caught:
        proof_of(replace(region, view=other.view, extraction=other.extraction))

    assert str(caught.value) == (
        "main, output out0: the chosen program is not proven: "
        "no rule that was recorded makes its exp"
    )


def test_every_rule_of_the_book_is_read() -> None:
    book = RuleBook.default(fast_math=True, bounded=True)
    declared = book.reading.scope.declarations

    for rule in book.rewrites:
        for direction in rule_templates(rule, declared):
            assert direction.name in rule.reported
            assert all(slot.sort for slot in direction.slots), rule.name


def test_the_tolerance_of_a_function_is_in_its_traces() -> None:
    module = module_of("x(n, 4)", "gv = R.nn.relu(x)")
    (region,) = rx.explain(module, tolerance=0.01).regions

    tolerance = tolerance_of("main", rx.explain(module, tolerance=0.01).module["main"].attrs)
    found = prove(region, ["gv"], tolerance)

    assert [(t.function, t.output, t.tolerance) for t in found.traces] == [("main", "gv", 0.01)]
