"""Whether what an instance says of its values is so."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.egraph.rulebook.vocabulary import Declaration
from relax_egraph.ir.dtypes import name_of
from relax_egraph.ir.op import OPS
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.values.applied import constant
from relax_egraph.verify.values.evaluation import Evaluation
from relax_egraph.verify.values.program import Program
from relax_egraph.verify.values.tolerance import Computed

_EXTENT = 2
"""Of every symbol."""


def truthful(instance: Instance, declarations: Mapping[str, Declaration]) -> bool:
    """Whether each value of which an instance says that its elements are one number is that.

    Numbers are drawn for what an operator makes as for anything else, and an e-graph that is told
    two numbers of one value proves whatever one likes.
    """
    problem = instance.problem
    if not any(v in problem.made for v in problem.scalars):
        return True
    program = Program(declarations)
    program.add(instance)
    extents = dict.fromkeys(program.symbols, _EXTENT)
    run = Evaluation(program, extents, "ordinary", np.random.default_rng(0))
    run.compute()
    for step in program.steps:
        value = run.values.get(step.number)
        is_computed = step.node is not None and step.node.op in OPS
        if step.scalar is None or not is_computed or not isinstance(value, Computed):
            continue
        said = constant(step.scalar, value.value.shape, name_of(value.value.dtype)).value
        if not np.allclose(value.wide, said.astype(value.wide.dtype), 1e-6, 0, equal_nan=True):
            return False
    return True
