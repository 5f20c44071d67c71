"""The options of `optimize`, each written once: its type, its default and the values it takes."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import wraps
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar, get_args, get_type_hints

from relax_egraph.base.parameters import (
    FLAG,
    NAMES,
    SECONDS,
    Kind,
    collection,
    instance,
    optional,
    takes,
)
from relax_egraph.egraph.engine import Budget, Phase, Schedule
from relax_egraph.egraph.rulebook.installed import installed
from relax_egraph.errors import known_names
from relax_egraph.extract import HINTS, Hints, Prices, Profile, scenarios_of
from relax_egraph.ir import assumptions
from relax_egraph.ir.module import MODULE, IRModule
from relax_egraph.ir.occurrences import symbols_in
from relax_egraph.ir.tolerance import TOLERANCE
from relax_egraph.optimize.variants import VARIANTS, Variants, parts_of
from relax_egraph.passes.check_assumptions import bound_symbols
from relax_egraph.rules import RULES, Given, Rules, read

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Session")

_CONDITIONS = collection(
    'a sequence of conditions, such as ["n >= 1"]', instance("a condition in a text", str)
)
_PROFILE = instance("the Profile of a machine, such as calibrated() returns", Profile)
_SCHEDULE = collection("a sequence of Phases", instance("a Phase", Phase))


@dataclass(frozen=True)
class Session:
    """How a module is to be optimized; `optimize` says what each option means."""

    rules: Annotated[Sequence[Given], RULES] = ()
    _: KW_ONLY
    without: Annotated[Sequence[str], NAMES] = ()
    fast_math: Annotated[bool, FLAG] = False
    tolerance: Annotated[float | None, optional(TOLERANCE)] = None
    assume: Annotated[Sequence[str], _CONDITIONS] = ()
    hints: Annotated[Hints | None, optional(HINTS)] = None
    variants: Annotated[Variants | None, optional(VARIANTS)] = None
    profile: Annotated[Profile | None, optional(_PROFILE)] = None
    prices: Annotated[Prices | None, optional(instance("Prices", Prices))] = None
    budget: Annotated[Budget | None, optional(instance("a Budget", Budget))] = None
    schedule: Annotated[Schedule | None, optional(_SCHEDULE)] = None
    isolate: Annotated[bool | None, optional(FLAG)] = None
    time_limit: Annotated[float | None, optional(SECONDS)] = None

    def read_rules(self) -> Rules:
        """The rules of installed packages, and the user's."""
        return Rules((*installed().files, *read(self.rules).files))


def kinds_of(session: type[Session]) -> dict[str, Kind]:
    """The kind of each option of a class of sessions."""
    hints = get_type_hints(session, include_extras=True)
    return {f.name: get_args(hints[f.name])[1] for f in fields(session)}


OPTIONS = {name: kind for name, kind in kinds_of(Session).items() if name != "rules"}
"""The kind of each option but the rules."""


def changed_options(session: Session) -> dict[str, Any]:
    """The options that differ from their defaults, but the rules: keywords of `Session`."""
    values = ((f, getattr(session, f.name)) for f in fields(session) if f.name in OPTIONS)
    return {f.name: value for f, value in values if value != f.default}


def with_options_of(
    session: Callable[P, S],
) -> Callable[[Callable[[IRModule, S], R]], Callable[Concatenate[IRModule, P], R]]:
    """Have a function of a module and a `session` take the options themselves, and check them.

    @with_options_of(Session)
    def optimize(module: IRModule, session: Session) -> IRModule: ...

    optimize(module, ["my.egg"], tolerance=0.02)
    """

    def decorate(function: Callable[[IRModule, S], R]) -> Callable[Concatenate[IRModule, P], R]:
        hints = get_type_hints(function)
        types = get_type_hints(hints["session"])

        @wraps(function)
        def called(module: IRModule, *args: P.args, **kwargs: P.kwargs) -> R:
            return function(module, session(*args, **kwargs))

        first = inspect.signature(function).parameters["module"].replace(annotation=IRModule)
        options = inspect.signature(session).parameters.values()
        vars(called)["__signature__"] = inspect.Signature(
            [first, *(o.replace(annotation=types[o.name]) for o in options)],
            return_annotation=hints["return"],
        )
        return takes(module=MODULE, **kinds_of(hints["session"]))(called)

    return decorate


def check_symbols(module: IRModule, session: Session) -> None:
    """Check that every symbol in the options of `session` is a symbol of `module`.

    Raises `AssumptionError` for a condition that applies to no function of the module, and
    ``ValueError`` for `hints` and `variants` of other symbols.
    """
    functions = [f for _, f in module.relax_functions() if not f.attrs.get("primitive")]
    bound = list(map(bound_symbols, functions))
    assumptions.parse(session.assume, bound)
    parts_of(session.variants or {}, set[str]().union(*bound))
    if session.hints:
        known = frozenset[str]().union(*map(symbols_in, functions))
        for _, sizes in scenarios_of(session.hints):
            for name in sizes:
                if name not in known:
                    message = "no dimension of the module has it"
                    raise ValueError(f"hints of {name}: {message}; {known_names(name, known)}")
