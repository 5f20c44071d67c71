"""Where in a model a rule is asked about: a value by its name or number, or those of a kernel."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from relax_egraph.egraph.rulebook.scope import near
from relax_egraph.reasons.kernels import Running
from relax_egraph.reasons.why_not.blocks import Part, bound_in

_LISTED = 12
"""So many variables are listed where one is not found."""

_KERNEL = "fused_"
"""What the names of fused functions begin with."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Values by their names, in each of the parts that have some; `said` is how they are called."""

    said: str
    names: Mapping[Part, Sequence[str]]


def asked(at: str, parts: Sequence[Part], kernels: Callable[[], Iterable[Running]]) -> Asked:
    """What `at` means: a variable, ``function.variable``, a number, or one of the `kernels`.

    A number is the place of a value among those that the dataflow blocks of a function bind; a
    negative one counts from the end.  `kernels` are asked for only if `at` is named as they are.
    Raises ``ValueError``.
    """
    function, _, name = at.rpartition(".")
    within = [p for p in parts if p.function == function]
    scopes = [(at, parts)] if not within else [(name, within), (at, parts)]
    for said, some in scopes:
        if found := _named(said, some):
            return Asked(said, found)
    said, some = scopes[0]
    if re.fullmatch(r"-?\d+", said):
        return _numbered(said, some)
    if said.startswith(_KERNEL) and (found := _made_by(said, some, kernels())):
        return Asked(said, found)
    known = dict.fromkeys(name for part in some for name in part.variables)
    listed = ", ".join([*known][:_LISTED]) + ", …" * (len(known) > _LISTED)
    note = near(said, known) or f"there are {listed}"
    where = f" of {function}" * bool(within)
    raise ValueError(f"no value of a dataflow block{where} is named {said!r}; {note}")


def _named(name: str, parts: Iterable[Part]) -> dict[Part, Sequence[str]]:
    return {part: [name] for part in parts if name in part.variables}


def _numbered(said: str, parts: Sequence[Part]) -> Asked:
    """The value of that number, in the only function that there is."""
    functions = {part.function: part.definition for part in parts}
    if len(functions) > 1:
        names = ", ".join(functions)
        raise ValueError(
            f"{said} may be of any of the functions {names}: needs {min(functions)}.{said}"
        )
    (function,) = functions
    names, number = list(bound_in(functions[function])), int(said)
    if not -len(names) <= number < len(names):
        raise ValueError(
            f"no value has number {said}: the dataflow blocks of {function} bind {len(names)}, "
            "counted from 0"
        )
    name = names[number]
    return Asked(name, _named(name, parts))


def _made_by(
    kernel: str, parts: Iterable[Part], kernels: Iterable[Running]
) -> dict[Part, Sequence[str]]:
    """The values that operators of the program make which `kernel` stands for."""
    found: dict[Part, Sequence[str]] = {}
    made = [one for one in kernels if one.callee == kernel]
    for part in parts:
        here = (v.name for one in made if one.placed.source == part.function for v in one.replaces)
        if names := [name for name in dict.fromkeys(here) if name in part.variables]:
            found[part] = names
    return found
