"""What a server needs to know of a model; `relax_egraph.inference.model.Model` is one."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from relax_egraph.inference.tensor import Tensor

Array: TypeAlias = npt.NDArray[Any]
Arrays: TypeAlias = Mapping[str, Array]
"""Arrays by the names of inputs or outputs."""


class Model(Protocol):
    """A function of named arrays.

    A call raises ``ValueError``, ``TypeError`` or `RelaxEgraphError` for inputs that it refuses.
    """

    @property
    def name(self) -> str:
        """The name in addresses."""
        ...

    @property
    def inputs(self) -> Sequence[Tensor]:
        """The inputs."""
        ...

    @property
    def outputs(self) -> Sequence[Tensor]:
        """The outputs."""
        ...

    @property
    def batch(self) -> str | None:
        """The symbol that is the first extent of every input and output, if there is one."""
        ...

    @property
    def bounds(self) -> Sequence[int]:
        """The sizes of `batch` at which the plan changes: each the largest of a plan, ascending."""
        ...

    def __call__(self, inputs: Arrays, /) -> Arrays:
        """The outputs."""
        ...


def shape_text(shape: Sequence[int | str]) -> str:
    """A shape in a message: ``[n, 64]``."""
    return f"[{', '.join(map(str, shape))}]"


def rows_of(inputs: Arrays) -> int | None:
    """The first extent that all `inputs` have; ``None`` if there is none."""
    extents = {array.shape[:1] for array in inputs.values()}
    return next(iter(extents))[0] if len(extents) == 1 and () not in extents else None


def joined(parts: Sequence[Arrays]) -> Arrays:
    """The rows of several calls as one call."""
    first, *others = parts
    if not others:
        return first
    return {name: np.concatenate([part[name] for part in parts]) for name in first}
