"""The two sides of a rule as numpy computes them of one instance, without an e-graph.

The operators that a rule matches are steps of the instance's program; what the rule makes is
computed from their values as it is written.  A rule that deduces facts has no sides.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from relax_egraph.egraph.rulebook.rule import Direction
from relax_egraph.egraph.rulebook.vocabulary import Declaration
from relax_egraph.ir import dims
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import ShapeStructInfo, tensor
from relax_egraph.verify.failures.terms import Terms, equated, inferred
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.instances.primitives import Fails
from relax_egraph.verify.values.applied import Result, constant, exact
from relax_egraph.verify.values.evaluation import NOT_COMPUTED, Evaluation
from relax_egraph.verify.values.inputs import Array, Kind
from relax_egraph.verify.values.program import Program
from relax_egraph.verify.values.tolerance import Computed

_EXTENTS = (2, 3, 5, 0, 1, 2)
"""Of symbols; 2 is the likeliest."""


@dataclass(frozen=True, slots=True)
class Sides:
    """What an instance's two sides are: `right` is ``None`` where it has no value, and `why`.

    `instance` has the elements and extents of this run.
    """

    instance: Instance
    left: Result
    right: Result | None
    why: str = ""


def program_of(instance: Instance, declarations: Mapping[str, Declaration]) -> Program:
    """The program of `instance` alone."""
    program = Program(declarations)
    program.add(instance)
    return program


def sides_of(
    pattern: Direction, program: Program, kind: Kind, rng: np.random.Generator
) -> Iterator[Sides]:
    """Both sides of all that `pattern` equates in the `program` of one instance.

    Elements that are not known are drawn.  Raises `Unknown`.
    """
    (instance,) = program.instances
    extents = {n: int(rng.choice(_EXTENTS)) for n in program.symbols} | dict(instance.extents)
    run = Evaluation(program, extents, kind, rng)
    arrays: dict[str, Array] = {}
    for step in program.steps:
        known = instance.arrays.get(step.variable) if step.is_leaf else None
        try:
            result = exact(known) if known is not None else run.result(step, run.values.get)
        except NOT_COMPUTED:
            continue
        if result is not None:
            run.values[step.number] = result
        if step.is_leaf and step.scalar is None and isinstance(result, Computed):
            arrays[step.variable] = result.value
    at = replace(instance, arrays=arrays, extents=extents)
    numbers = {s.variable: s.number for s in program.steps}
    terms = Terms.of(pattern, at, _Arrays(run, numbers))
    for left, right in equated(pattern):
        try:
            first = terms.value(left)
        except (*NOT_COMPUTED, Fails):
            continue
        try:
            yield Sides(at, first, terms.value(right))
        except NOT_COMPUTED as problem:
            yield Sides(at, first, None, str(problem))
        except Fails:
            continue


@dataclass(frozen=True, slots=True)
class _Arrays:
    """The domain of arrays, of one run; `numbers` are those of its steps by variable."""

    run: Evaluation
    numbers: Mapping[str, int]

    def tensor(self, variable: str) -> Result:
        known = self.run.values.get(self.numbers.get(variable, -1))
        if known is None:
            raise Fails
        return known

    def number(self, value: float, dtype: str) -> Result:
        return constant(value, (), dtype)

    def part(self, whole: Any, index: int) -> Result:
        return whole[index]

    def applied(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Result:
        inferred(op, [_info(o) for o in operands], attrs)
        children = tuple(
            ShapeStructInfo(value, len(value)) if o.kind == "shape" else value
            for o, value in zip(op.operands, operands, strict=True)
        )
        result = self.run.apply(op, children, dict(attrs), _itself)
        if result is None:
            raise Fails
        return result


def _info(value: Any) -> Any:
    """An operand with struct info for arrays."""
    match value:
        case Computed(value=array):
            return tensor(array.shape, array.dtype.name)
        case tuple():
            return tuple(map(_info, value))
        case _:
            return value


def _itself(value: Any) -> Any:
    return value


def extents_of(instance: Instance, variable: str) -> tuple[int, ...]:
    """The extents of a tensor, of symbols as the instance has them."""
    dims_of = instance.info(variable).dims or ()
    return tuple(dims.evaluate(d, instance.extents) for d in dims_of)
