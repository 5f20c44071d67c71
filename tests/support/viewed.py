"""The saturated e-graph of a module's single block, and a check of all its equalities.

The selection is up to the cost model; these tests concern the alternatives.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph import rules
from relax_egraph.egraph.encoding.encode import encode
from relax_egraph.egraph.engine import RuleBook, saturate
from relax_egraph.egraph.node import LEAF
from relax_egraph.egraph.saturation.report import StopReason
from relax_egraph.egraph.view import ClassId, ENode, View
from relax_egraph.ir import BlockBuilder, IRModule, Var, call, const, dims
from relax_egraph.ir.expr import Constant, Expr, Function, Tuple
from relax_egraph.ir.struct_info import TensorStructInfo
from relax_egraph.verify.values.applied import computed, exact
from relax_egraph.verify.values.tolerance import Computed

Array = npt.NDArray[Any]
Emit = Callable[..., Var]

REWRITES = tuple(f for f in rules.FAMILIES if f != "fusion")


def weight(rng: np.random.Generator, *extents: int) -> Constant:
    """A constant of random numbers of magnitude 1."""
    return const(rng.standard_normal(extents).astype(np.float32))


def block(params: Sequence[Var], body: Callable[[Emit], Iterable[Expr]]) -> IRModule:
    """``main`` of one dataflow block; `body` emits operators and returns the outputs."""
    bb = BlockBuilder()

    def emit(name: str, *args: Expr, **attrs: Any) -> Var:
        return bb.emit(call(name, *args, **attrs))

    with bb.function("main", params):
        with bb.dataflow():
            outputs = [bb.emit_output(value) for value in body(emit)]
        bb.emit_func_output(Tuple(tuple(outputs)))
    return bb.get()


def saturated(
    module: IRModule, families: Iterable[str] = REWRITES, *, fast_math: bool = False
) -> View:
    """The block of ``main``, saturated within its budgets."""
    main = module["main"]
    assert isinstance(main, Function)
    (bindings,) = [b.bindings for b in main.body.blocks if len(b.bindings) > 1]
    outputs = [b.var for b in bindings if type(b.var) is Var]
    book = RuleBook.default(families=families, fast_math=fast_math)
    result = saturate(encode(bindings, outputs).view, book)
    assert {phase.stop for phase in result.report.phases} == {StopReason.SATURATED}
    return result.view


def nodes(view: View, op: str) -> list[ENode]:
    """The nodes of operator `op`, of all classes."""
    return [n for c in view.classes.values() if c.sort == "tensor" for n in c.nodes if n.op == op]


def operators_of(view: View, value: ClassId) -> set[str]:
    """The operators of the nodes of a class."""
    return {node.op for node in view.classes[value].nodes}


def check_equal(view: View, seed: int = 0, **extents: int) -> int:
    """Compute every node on random leaves; all nodes of a class agree.  Returns their number."""
    rng = np.random.default_rng(seed)
    values: dict[ClassId, Computed] = {}
    compared: set[tuple[ClassId, ENode]] = set()
    progress = True
    while progress:
        progress = False
        for number, eclass in view.classes.items():
            for node in eclass.nodes if eclass.sort == "tensor" else ():
                if (number, node) in compared or not values.keys() >= set(node.operands):
                    continue
                if node.op == LEAF:
                    value = exact(_leaf(view.leaves[node.key], eclass.struct_info, extents, rng))
                else:
                    value = computed(node, values.get, extents)
                assert isinstance(value, Computed)
                compared.add((number, node))
                progress = True
                known = values.setdefault(number, value)
                np.testing.assert_allclose(value.value, known.value, rtol=1e-3, atol=1e-3)
    return len(compared) - len(values)


def _leaf(
    leaf: Expr, info: TensorStructInfo, extents: Mapping[str, int], rng: np.random.Generator
) -> Array:
    if isinstance(leaf, Constant):
        return leaf.data
    shape = [dims.evaluate(d, extents) for d in info.dims or ()]
    return rng.standard_normal(shape).astype(info.dtype)
