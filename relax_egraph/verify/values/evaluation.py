"""The evaluation of a program on random inputs, in its own dtypes and in float64."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relax_egraph.egraph.encoding.narrowing import stored
from relax_egraph.egraph.encoding.reciprocals import are_invertible
from relax_egraph.egraph.node import C, Node
from relax_egraph.errors import RelaxEgraphError, RunError
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import name_of
from relax_egraph.ir.op import Op
from relax_egraph.verify.values.applied import Result, applied, computed, constant, exact
from relax_egraph.verify.values.inputs import Kind, random_array
from relax_egraph.verify.values.program import Program, Step
from relax_egraph.verify.values.tolerance import Computed

NOT_COMPUTED = (
    *(RelaxEgraphError, ArithmeticError, AttributeError),
    *(LookupError, TypeError, ValueError),
)
"""Exceptions of struct-info rules and of the reference for operands that an operator refuses."""


@dataclass(slots=True)
class Evaluation:
    """One run on random inputs: the `extents` of symbols, and the `values` of steps by number.

    A generator `jitter` adds rounding errors, as in `applied`.
    """

    program: Program
    extents: Mapping[str, int]
    kind: Kind
    rng: np.random.Generator
    jitter: np.random.Generator | None = None
    values: dict[int, Result] = field(default_factory=dict[int, Result])

    def compute(self) -> None:
        """Compute all steps of the program that can be computed."""
        for step in self.program.steps:
            try:
                result = self.result(step, self.values.get)
            except NOT_COMPUTED:
                continue
            if result is not None:
                self.values[step.number] = result

    def result(self, step: Step, value_of: Callable[[int], Result | None]) -> Result | None:
        """The result of `step`, from the results of others; ``None`` if one is missing."""
        if step.node is None:
            return None
        return self.leaf(step) if step.is_leaf else self.computed(step.node, value_of)

    def leaf(self, step: Step) -> Computed:
        """A random value, or the value that the step or its instance determines.

        Raises `RunError` for a negative extent, such as n - 1 where n is 0.
        """
        assert step.info is not None
        shape = tuple(dims.evaluate(d, self.extents) for d in step.info.dims or ())
        dtype = str(step.info.dtype)
        if min(shape, default=0) < 0:
            raise RunError(f"there is no tensor of shape {shape}")
        if step.scalar is not None:
            return constant(step.scalar, shape, dtype)
        known = self.program.instances[step.instance].arrays.get(step.variable)
        if known is not None and known.shape == shape and name_of(known.dtype) == dtype:
            value = known
        else:
            value = random_array(self.rng, shape, dtype, _kind(step, self.kind))
        if step.has_reciprocal:
            value = np.where(are_invertible(value), value, value.dtype.type(1))
        for narrow, axis in step.narrow:
            value = stored(value, narrow, axis)
        return exact(value)

    def computed(self, node: Node[C], value_of: Callable[[C], Result | None]) -> Result | None:
        """The value of `node`, which is not a leaf, from the values of its operands."""
        return computed(node, value_of, self.extents, self.jitter)

    def apply(
        self,
        op: Op,
        children: tuple[Any, ...],
        attrs: dict[str, Any],
        value_of: Callable[[Any], Result | None],
    ) -> Result | None:
        """The result of `op`, in its dtype and in float64."""
        return applied(op, children, attrs, value_of, self.extents, self.jitter)


def _kind(step: Step, kind: Kind) -> Kind:
    """The kind of values of a leaf: weights are not NaN, and narrow storage needs finite values."""
    unfit: tuple[Kind, ...] = ("nan",) if step.constant else ()
    unfit = ("nan", "infinite", "extreme") if step.narrow else unfit
    return "ordinary" if kind in unfit else kind
