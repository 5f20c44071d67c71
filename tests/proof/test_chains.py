"""Which rules made a kernel, by the steps of the proof."""

from relax_egraph.egraph.node import Node, leaf_node
from relax_egraph.egraph.view import Choice
from relax_egraph.ir.kernel import Input, Kernel
from relax_egraph.ir.kernel import Step as KernelStep
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import tensor
from relax_egraph.proof.chains import chains, rules_of
from relax_egraph.proof.trace import Step
from tests.support.traces import Sketch


def test_rules_of_a_part_come_in_the_order_of_their_use() -> None:
    s = Sketch()
    x, y = s.variable("x", (3,)), s.variable("y", (3,))
    a, b, c = s("exp", x), s("abs", x), s("sin", x)
    other, done = s("exp", y), s("abs", y)
    trace = s.trace(
        s("add", a, other),
        Step("first", a, b),
        Step("elsewhere", other, done),
        Step("second", b, c),
        result=s("add", c, done),
    )

    assert rules_of(trace, trace.result) == ("first", "elsewhere", "second")
    assert rules_of(trace, c) == ("first", "second")
    assert rules_of(trace, done) == ("elsewhere",)
    assert rules_of(trace, x) == ()
    assert rules_of(trace, trace.result, inputs=[c, done]) == ()
    assert rules_of(trace, trace.result, inputs=[c]) == ("elsewhere",)


def test_what_a_rule_makes_nothing_of_is_read_by_another() -> None:
    s = Sketch()
    x, zero = s.variable("x", (3,)), s.scalar(0, (3,))
    root = s("sqrt", x)
    sum_, reader, read = s("add", root, zero), s("exp", s("add", root, zero)), s("exp", root)
    trace = s.trace(reader, Step("add-zero", sum_, root), result=read)

    assert rules_of(trace, read, inputs=[root]) == ("add-zero",)
    assert rules_of(trace, root) == ()


def test_nodes_that_a_rule_takes_lead_to_those_that_made_them() -> None:
    s = Sketch()
    x = s.variable("x", (3,))
    source, halfway, taken, made = (s(op, s("abs", x)) for op in ("sin", "cos", "exp", "tan"))
    around = s("negative", source), s("negative", made)
    trace = s.trace(
        around[0],
        Step("one", source, halfway),
        Step("two", halfway, taken),
        Step("three", taken, made),
        result=around[1],
    )

    assert rules_of(trace, made, inputs=[s("abs", x)]) == ("one", "two", "three")
    assert rules_of(trace, around[1], inputs=[made]) == ()


def test_of_a_step_with_its_surroundings_only_the_rule_counts() -> None:
    s = Sketch()
    x = s.variable("x", (3,))
    a, b = s("exp", x), s("abs", x)
    before, after = s("negative", s("sin", a)), s("negative", s("sin", b))
    trace = s.trace(s("add", before, a), Step("inside", before, after), result=s("add", after, a))

    assert rules_of(trace, after) == ("inside",)
    assert rules_of(trace, after, inputs=[b]) == ()
    assert rules_of(trace, b) == ("inside",)


def test_chains_by_kernel() -> None:
    s = Sketch()
    x, y = s.variable("x", (3,)), s.variable("y", (3,))
    inner, exponent = s("add", x, y), s("exp", s("add", x, y))
    twice, outer = s("nn.relu", s("nn.relu", exponent)), s("nn.relu", exponent)
    added = s("add", s.load(x), s.load(y))
    stored = s.store(s("exp", s.load(s.store(added))))
    kept = s.store(s("exp", added))
    trace = s.trace(
        twice,
        Step("relu-of-relu", twice, outer),
        Step("lower-add", inner, s.store(added)),
        Step("lower-exp", s("exp", s.store(added)), stored),
        Step("load-of-store", s.load(s.store(added)), added),
        result=s("nn.relu", kept),
    )
    info = tensor((3,), "float32")
    kernel = Kernel(
        (Input(info), Input(info)),
        (KernelStep(OPS["add"], (0, 1), (), info), KernelStep(OPS["exp"], (2,), (), info)),
        (3,),
    )
    program = (
        Choice(leaf_node(0), (), (0,)),
        Choice(leaf_node(1), (), (1,)),
        Choice(kernel, (0, 1), (2,)),
        Choice(Node("nn.relu", (2,)), (2,), (3,)),
    )

    assert chains([trace], [3], program) == {
        2: ("lower-add", "lower-exp", "load-of-store"),
        3: ("relu-of-relu",),
    }
