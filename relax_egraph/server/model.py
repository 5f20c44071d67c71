"""What a server needs to know of a model; `relax_egraph.inference.model.Model` is one."""

from collections.abc import Sequence
from typing import Protocol

from relax_egraph.inference.rows import Arrays, Function


class Model(Function, Protocol):
    """A function of named arrays.

    A call raises ``ValueError``, ``TypeError`` or `RelaxEgraphError` for inputs that it refuses.
    """

    @property
    def name(self) -> str:
        """The name in addresses."""
        ...

    @property
    def bounds(self) -> Sequence[int]:
        """The sizes of `batch` at which the plan changes: each the largest of a plan, ascending."""
        ...


def shape_text(shape: Sequence[int | str]) -> str:
    """A shape in a message: ``[n, 64]``."""
    return f"[{', '.join(map(str, shape))}]"


def rows_of(inputs: Arrays) -> int | None:
    """The first extent that all `inputs` have; ``None`` if there is none."""
    extents = {array.shape[:1] for array in inputs.values()}
    return next(iter(extents))[0] if len(extents) == 1 and () not in extents else None
