"""The ``at`` argument of `why_not`: values by name, by number, or by the kernel that has them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from relax_egraph.egraph.rulebook.scope import near
from relax_egraph.reasons.kernels import Running
from relax_egraph.reasons.why_not.blocks import Part, bound_in

_LISTED = 12
"""The most variables in the message about an unknown name."""

_KERNEL = "fused_"
"""The prefix of the names of fused functions."""


@dataclass(frozen=True, slots=True)
class Target:
    """The values of a question, by part; `name` is their name in the answer."""

    name: str
    names: Mapping[Part, Sequence[str]]


def target_at(at: str, parts: Sequence[Part], kernels: Callable[[], Iterable[Running]]) -> Target:
    """The values that `at` names: a variable, ``function.variable``, a number, or a kernel.

    A number counts the bindings in the dataflow blocks of a function; a negative one counts from
    the end.  `kernels` is called only if `at` begins like the name of a fused function.  Raises
    ``ValueError``.
    """
    function, _, name = at.rpartition(".")
    within = [p for p in parts if p.function == function]
    scopes = [(at, parts)] if not within else [(name, within), (at, parts)]
    for text, some in scopes:
        if names := _named(text, some):
            return Target(text, names)
    text, some = scopes[0]
    if re.fullmatch(r"-?\d+", text):
        return _numbered(text, some)
    if text.startswith(_KERNEL) and (names := _replaced_by(text, some, kernels())):
        return Target(text, names)
    known = dict.fromkeys(name for part in some for name in part.variables)
    listed = ", ".join([*known][:_LISTED]) + ", …" * (len(known) > _LISTED)
    note = near(text, known) or f"there are {listed}"
    where = f" of {function}" * bool(within)
    raise ValueError(f"no value of a dataflow block{where} is named {text!r}; {note}")


def _named(name: str, parts: Iterable[Part]) -> dict[Part, Sequence[str]]:
    return {part: [name] for part in parts if name in part.variables}


def _numbered(digits: str, parts: Sequence[Part]) -> Target:
    """The value with a number; raises ``ValueError`` if `parts` are of several functions."""
    functions = {part.function: part.definition for part in parts}
    if len(functions) > 1:
        names = ", ".join(functions)
        raise ValueError(
            f"{digits} may be of any of the functions {names}: needs {min(functions)}.{digits}"
        )
    (function,) = functions
    names, number = list(bound_in(functions[function])), int(digits)
    if not -len(names) <= number < len(names):
        raise ValueError(
            f"no value has number {digits}: the dataflow blocks of {function} bind {len(names)}, "
            "counted from 0"
        )
    name = names[number]
    return Target(name, _named(name, parts))


def _replaced_by(
    kernel: str, parts: Iterable[Part], kernels: Iterable[Running]
) -> dict[Part, Sequence[str]]:
    """By part, the names of the values that calls of `kernel` replace."""
    by_part: dict[Part, Sequence[str]] = {}
    calls = [one for one in kernels if one.callee == kernel]
    for part in parts:
        here = (v.name for one in calls if one.placed.source == part.function for v in one.replaces)
        if names := [name for name in dict.fromkeys(here) if name in part.variables]:
            by_part[part] = names
    return by_part
