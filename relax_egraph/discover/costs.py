"""The cost of a term by the project's cost model."""

from collections.abc import Mapping

from relax_egraph.discover.evaluation import Values, node_of
from relax_egraph.discover.terms import Apply, Term, parts
from relax_egraph.discover.worlds import WORLDS
from relax_egraph.extract.cost import VIEW, Costs
from relax_egraph.extract.profile import REFERENCE_PROFILE
from relax_egraph.ir.kernel import Schedule

_SIZE = 1024
"""The size of the symbols at which terms are priced."""

_VIEWS = ("reshape", "flatten", "expand_dims", "squeeze")
"""Operators that move no element."""

_SCHEDULE = Schedule("elementwise", 1.0, 1.0)
_COSTS = Costs(REFERENCE_PROFILE, dict.fromkeys("nm", _SIZE))


def cost_of(term: Term, world: int, values: Mapping[Term, Values]) -> float:
    """Seconds for `term` in a world (by position) where it has a value, if no kernels are fused.

    Each operator is a kernel of its own that reaches the peak of the machine, or a view.
    """
    applications = {part for part in parts(term) if isinstance(part, Apply)}
    return sum(_operator(part, world, values) for part in applications)


def _operator(term: Apply, world: int, values: Mapping[Term, Values]) -> float:
    node = node_of(term, WORLDS[world], lambda arg: values[arg][world])
    result = values[term][world]
    if node.op in _VIEWS or result is None:
        return VIEW
    operands = [value.info for value in node.operands if value is not None]
    return _COSTS.operator(node.op, dict(node.attrs), operands, [result.info], _SCHEDULE)
