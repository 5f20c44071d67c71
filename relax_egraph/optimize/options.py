"""The options of `optimize`: what values they take, and that the symbols they name are there."""

from collections.abc import Mapping
from typing import Any

from relax_egraph.base.parameters import FLAG, NAMES, SECONDS, Kind, collection, instance, optional
from relax_egraph.egraph.engine import Budget, Phase
from relax_egraph.errors import known_names
from relax_egraph.extract import HINTS, Prices, Profile, scenarios_of
from relax_egraph.ir import assumptions
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.occurrences import symbols_in
from relax_egraph.ir.tolerance import TOLERANCE
from relax_egraph.optimize.variants import VARIANTS, parts_of
from relax_egraph.passes.check_assumptions import bound_symbols

OPTIONS: Mapping[str, Kind] = {
    "without": NAMES,
    "fast_math": FLAG,
    "tolerance": optional(TOLERANCE),
    "assume": collection(
        'a sequence of conditions, such as ["n >= 1"]', instance("a condition in a text", str)
    ),
    "hints": optional(HINTS),
    "variants": optional(VARIANTS),
    "profile": optional(
        instance("the Profile of a machine, such as calibrated() returns", Profile)
    ),
    "prices": optional(instance("Prices", Prices)),
    "budget": optional(instance("a Budget", Budget)),
    "schedule": optional(collection("a sequence of Phases", instance("a Phase", Phase))),
    "isolate": optional(FLAG),
    "time_limit": SECONDS,
}
"""What each option takes."""


def check_symbols(module: IRModule, options: Mapping[str, Any]) -> None:
    """Check that the symbols which `options` name are symbols of `module`.

    Raises `AssumptionError` for a condition that no function of the module can be held to, and
    ``ValueError`` for `hints` and `variants` of other symbols.
    """
    functions = [f for _, f in module.relax_functions() if not f.attrs.get("primitive")]
    bound = list(map(bound_symbols, functions))
    assumptions.parse(options.get("assume", ()), bound)
    parts_of(options.get("variants") or {}, set[str]().union(*bound))
    if hints := options.get("hints"):
        known = frozenset[str]().union(*map(symbols_in, functions))
        for _, sizes in scenarios_of(hints):
            for name in sizes:
                if name not in known:
                    message = "no dimension of the module has it"
                    raise ValueError(f"hints of {name}: {message}; {known_names(name, known)}")
