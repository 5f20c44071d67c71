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
    """A table for ``ExportedProgram.run_decompositions`` and for AOTAutograd.

    Those into core ATen come first; torch's others are for operators outside of it.
    """
    others = {op: made for op, made in decomposition_table.items() if not _is_core(op)}
    known: dict[Any, Callable[..., Any]] = {**others, **default_decompositions()}
    kept = _WRITING | {op for op in known if converter_of(str(op)) is not None}
    return {op: made for op, made in known.items() if op not in kept}


_WRITING = {torch.ops.aten.complex.default}
"""Operators that torch decomposes into writes to memory, which it then finds no input for."""


def _is_core(op: torch._ops.OperatorBase) -> bool:
    return isinstance(op, torch._ops.OpOverload) and torch.Tag.core in op.tags
