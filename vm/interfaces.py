"""What functions return, and the sizes at which their plans change, in an executable's metadata."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from relax_egraph.errors import ExecutableError

KEY = "interfaces"
"""The name of the text in `Executable.metadata`."""


@dataclass(frozen=True, slots=True)
class Interface:
    """What a function returns, as script writes it, and its `bounds` by symbol.

    A bound is the largest size that a plan is for; sizes above the last one have a plan, too.
    """

    result: str
    bounds: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])


def interfaces_text(interfaces: Mapping[str, Interface]) -> str:
    """`interfaces` by the names of functions, for the metadata."""
    return json.dumps({name: [i.result, i.bounds] for name, i in interfaces.items()})


def interfaces_of(metadata: Mapping[str, str]) -> dict[str, Interface]:
    """The interfaces in `metadata`; raises `ExecutableError` for a text that is none of ours."""
    try:
        rows: Mapping[str, Any] = json.loads(metadata.get(KEY, "{}"))
        return {
            name: Interface(str(result), {s: tuple(map(int, sizes)) for s, sizes in bounds.items()})
            for name, (result, bounds) in rows.items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise ExecutableError(f"metadata {KEY}: {error}") from None
