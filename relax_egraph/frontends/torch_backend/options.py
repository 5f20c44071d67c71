"""The options of ``torch.compile(model, backend="relax_egraph", options={...})``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from relax_egraph.errors import known_names


@dataclass(frozen=True, slots=True)
class Options:
    """How graphs are compiled.

    `rules`, `without`, `fast_math` and `tolerance` are those of `relax_egraph.optimize`.  `strict`
    refuses a graph with unsupported operators, which otherwise stay in torch.  `explain` is a file
    that gets the explanation of the graph that was compiled last.  With `freeze`, weights are
    constants of graphs that compute no gradients: they are packed and folded once.  After a weight
    was written, the graph is compiled again, with weights as inputs; what is written through
    ``weight.data`` is not noticed.
    """

    rules: Sequence[str] = ()
    without: Sequence[str] = ()
    fast_math: bool = False
    tolerance: float | None = None
    strict: bool = False
    explain: str | Path | None = None
    freeze: bool = False

    @property
    def of_optimize(self) -> dict[str, Any]:
        """The options of `relax_egraph.optimize`."""
        names = ("rules", "without", "fast_math", "tolerance")
        return {name: getattr(self, name) for name in names}


def options_of(given: Mapping[str, Any] | None) -> Options:
    """The options in `given`; raises ``ValueError`` for an unknown one."""
    known = [f.name for f in fields(Options)]
    for name in given or {}:
        if name not in known:
            hint = known_names(name, known)
            raise ValueError(f"the backend relax_egraph has no option {name!r}{hint}")
    return Options(**(given or {}))
