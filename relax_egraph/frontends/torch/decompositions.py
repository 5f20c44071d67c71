"""The decompositions of ATen operators: what has a converter is kept, else torch's own apply."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.export import default_decompositions

from relax_egraph.frontends.torch import operators as operators
from relax_egraph.frontends.torch.registry import converter_of


@cache
def decompositions() -> Mapping[torch._ops.OperatorBase, Callable[..., Any]]:
    """A table for ``ExportedProgram.run_decompositions`` and for AOTAutograd."""
    known: dict[Any, Callable[..., Any]] = {**decomposition_table, **default_decompositions()}
    return {op: made_of for op, made_of in known.items() if converter_of(str(op)) is None}
