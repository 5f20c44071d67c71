"""A check of an instance's claims about constant values."""

from collections.abc import Mapping, Sequence

import numpy as np

from relax_egraph.egraph.rulebook.vocabulary import Declaration
from relax_egraph.ir.dtypes import name_of
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.values.applied import constant
from relax_egraph.verify.values.evaluation import Evaluation
from relax_egraph.verify.values.inputs import Kind
from relax_egraph.verify.values.program import Program
from relax_egraph.verify.values.tolerance import Computed

_EXTENT = 2
"""The extent of every symbol."""

KINDS: tuple[Kind, ...] = ("ordinary", "ordinary", "ordinary", "nan", "all nan")
"""Kinds of values of leaves: on one of them a claim may be true by chance, as σ(0) is ½.

``clip(x, ∞, ∞)`` is ∞ unless `x` is NaN, which a scalar of kind "nan" may not be."""


def truthful(
    instance: Instance, declarations: Mapping[str, Declaration], kinds: Sequence[Kind] = KINDS
) -> bool:
    """Whether each value that an instance claims to be one number is that number.

    Leaves have values of these `kinds`, one after the other.

    Instances draw numbers also for results of operators.  An e-graph with two numbers for one value
    could prove anything.
    """
    problem = instance.problem
    if not any(v in problem.producers for v in problem.scalars):
        return True
    program = Program(declarations)
    program.add(instance)
    extents = dict.fromkeys(program.symbols, _EXTENT)
    return all(_holds(program, extents, kind, seed) for seed, kind in enumerate(kinds))


def _holds(program: Program, extents: Mapping[str, int], kind: Kind, seed: int) -> bool:
    run = Evaluation(program, extents, kind, np.random.default_rng(seed))
    run.compute()
    for step in program.steps:
        value = run.values.get(step.number)
        if step.scalar is None or step.is_leaf or not isinstance(value, Computed):
            continue
        claim = constant(step.scalar, value.value.shape, name_of(value.value.dtype)).value
        if not np.allclose(value.wide, claim.astype(value.wide.dtype), 1e-6, 0, equal_nan=True):
            return False
    return True
