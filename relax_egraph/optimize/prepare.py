"""A module as it is planned, and the rules with which its blocks are saturated."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from relax_egraph.egraph.engine import RuleBook
from relax_egraph.egraph.readback.decode import BROADCAST
from relax_egraph.extract import REFERENCE_PROFILE, Pricing
from relax_egraph.ir.assumptions import Assumptions
from relax_egraph.ir.called import called_operators
from relax_egraph.ir.expr import Function
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.tolerance import tolerance_of, with_tolerance
from relax_egraph.optimize.inlining import inline_by_price
from relax_egraph.optimize.made_calls import named_loops, with_loop_functions
from relax_egraph.optimize.session import Session
from relax_egraph.passes import (
    PassContext,
    convert_to_dataflow,
    eliminate_common_subexpr,
    fit_operands,
    fold_shapes,
    merge_dataflow_blocks,
    name_extents,
    refine_parameters,
    remove_all_unused,
)
from relax_egraph.passes.check_claims import check_claims_assuming
from relax_egraph.raising.read_loops import opaque_functions, read_loops
from relax_egraph.rules import ON_REQUEST, Rules

GATHER = (convert_to_dataflow(1), merge_dataflow_blocks)
"""Bindings without effects are gathered into dataflow blocks."""

SIMPLIFY = (fold_shapes, eliminate_common_subexpr, remove_all_unused)
"""Fold computed shapes, compute common values once."""


@dataclass(frozen=True, slots=True)
class Step:
    """A pass before planning, by name, and the functions that it changed or removed."""

    name: str
    functions: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(self.functions)}"


@dataclass(frozen=True, slots=True)
class Prepared:
    """The `module` that is planned, and the `steps` that changed it on the way, in order.

    Loop functions that it calls, as they are no operators, are `opaque`, each with the reason.
    """

    module: IRModule
    steps: tuple[Step, ...]
    opaque: Mapping[str, str]


def prepare(module: IRModule, session: Session, assumed: Assumptions | None = None) -> Prepared:
    """The module that is planned for `session`: `module`, simplified, with its tolerance.

    Declared struct info that does not follow from what is `assumed` is checked at run time.  Small
    private functions are inlined.  A `PassContext` leaves out the passes that it disables.  Raises
    `IllTyped` for an operator whose operands do not fit together where the assumptions hold.
    """
    pricing = Pricing(session.profile or REFERENCE_PROFILE, session.hints, session.prices)
    current = check_claims_assuming(assumed or Assumptions())(module)
    rules = session.read_rules()
    named = named_loops(rules)
    steps: list[Step] = []
    for step in (
        refine_parameters,
        read_loops(named),
        inline_by_price(pricing),
        refine_parameters,
        name_extents,
        fit_operands,
        *GATHER,
        *SIMPLIFY,
    ):
        if PassContext.current().enables(step):
            before, current = current, step(current)
            if changed := tuple(_changed(before, current)):
                steps.append(Step(step.name, changed))
    opaque = opaque_functions(current, named)
    current = with_loop_functions(current, module, named)
    return Prepared(_with_tolerance(current, session.tolerance), tuple(steps), opaque)


def _changed(before: IRModule, after: IRModule) -> Iterator[str]:
    """The functions of `before` that `after` has in another form, or not at all."""
    if before is not after:
        for name, function in before.functions.items():
            if after.functions.get(name) is not function:
                yield name


def book_for(
    prepared: IRModule, rules: Rules, without: Sequence[str] = (), fast_math: bool = False
) -> RuleBook:
    """The rules that blocks of a `prepared` module are saturated with."""
    left_out = (*without, *ON_REQUEST)
    every = RuleBook.default([rules], left_out, fast_math, bounded=has_tolerance(prepared))
    return every.for_operators(operators_in(prepared))


def has_tolerance(prepared: IRModule) -> bool:
    """Whether a function of the module may lose precision."""
    return any(tolerance_of(name, f.attrs) for name, f in prepared.relax_functions())


def operators_in(module: IRModule) -> frozenset[str]:
    """The operators that functions of `module` call, and the one that encoding adds."""
    return frozenset((BROADCAST, *(op.name for op in called_operators(module))))


def _with_tolerance(module: IRModule, tolerance: float | None) -> IRModule:
    """`module` with `tolerance` on each function that is planned, if there is one."""
    if tolerance is None:
        return module

    def changed(function: BaseFunc) -> BaseFunc:
        if isinstance(function, Function) and not function.attrs.get("primitive"):
            return with_tolerance(function, tolerance)
        return function

    functions = {name: changed(f) for name, f in module.functions.items()}
    return replace(module, functions=functions)
