"""What a program computes of random inputs, in its own dtypes and in float64."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relax_egraph.egraph.encoding.narrowing import stored
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
"""What type rules and the reference raise for operands that an operator does not take."""


@dataclass(slots=True)
class Evaluation:
    """One run on random inputs: `extents` of the symbols, and the values of leaves by number.

    What is `shaken` is rounded at random, as `applied` says.
    """

    program: Program
    extents: Mapping[str, int]
    kind: Kind
    rng: np.random.Generator
    shaken: np.random.Generator | None = None
    values: dict[int, Result] = field(default_factory=dict[int, Result])

    def compute(self) -> None:
        """Compute the steps of the program, as far as what they need can be."""
        for step in self.program.steps:
            try:
                result = self.result(step, self.values.get)
            except NOT_COMPUTED:
                continue
            if result is not None:
                self.values[step.number] = result

    def result(self, step: Step, given: Callable[[int], Result | None]) -> Result | None:
        """What `step` gives, of the results `given` of others; ``None`` if one is missing."""
        if step.node is None:
            return None
        return self.leaf(step) if step.is_leaf else self.computed(step.node, given)

    def leaf(self, step: Step) -> Computed:
        """A random value, or the one that the step or its instance says.

        Raises `RunError` if the shape is of no tensor: n - 1 where n is 0.
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
        for narrow, axis in step.narrow:
            value = stored(value, narrow, axis)
        return exact(value)

    def computed(self, node: Node[C], given: Callable[[C], Result | None]) -> Result | None:
        """The value of `node`, which is no leaf, of the values that are `given` of its operands."""
        return computed(node, given, self.extents, self.shaken)

    def apply(
        self,
        op: Op,
        children: tuple[Any, ...],
        attrs: dict[str, Any],
        given: Callable[[Any], Result | None],
    ) -> Result | None:
        """What `op` gives, in its dtype and in float64."""
        return applied(op, children, attrs, given, self.extents, self.shaken)


def _kind(step: Step, kind: Kind) -> Kind:
    """The kind of values of a leaf: no weight is NaN, and what is stored narrow is finite."""
    unfit: tuple[Kind, ...] = ("nan",) if step.constant else ()
    unfit = ("nan", "infinite", "extreme") if step.narrow else unfit
    return "ordinary" if kind in unfit else kind
