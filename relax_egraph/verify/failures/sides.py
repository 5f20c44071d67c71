"""The two sides of a rule on one instance, computed by numpy without an e-graph.

The operators on the left side are steps of the instance's program; the right side is evaluated as a
term on their values.  A rule that deduces facts has no sides.
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
"""Extents for symbols; 2 is the most frequent one."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The values of both sides; `right` is ``None`` if it has no value, for the reason `why`.

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
    """The sides of each equation of `pattern`, on the `program` of one instance.

    Unknown elements are drawn at random.  Raises `Unknown`.
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
            value = terms.value(left)
        except (*NOT_COMPUTED, Fails):
            continue
        try:
            yield Sides(at, value, terms.value(right))
        except NOT_COMPUTED as problem:
            yield Sides(at, value, None, str(problem))
        except Fails:
            continue


@dataclass(frozen=True, slots=True)
class _Arrays:
    """The arrays of one run as the domain of `Terms`; `numbers` has its steps by variable."""

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
    """An operand with struct info in place of arrays."""
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
    """The extents of a tensor, with the extents of `instance` for symbols."""
    dims_of = instance.info(variable).dims or ()
    return tuple(dims.evaluate(d, instance.extents) for d in dims_of)
