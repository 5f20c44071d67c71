"""The decompositions of ATen operators: what has a converter is kept, else torch's own apply."""

import warnings
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.export import ExportedProgram, default_decompositions
from torch.export.exported_program import (
    _decompose_exported_program,
    _disable_prexisiting_fake_mode,
    _split_decomp_table_to_cia_and_python_decomp,
)

from relax_egraph.frontends.torch import operators as operators
from relax_egraph.frontends.torch.registry import converter_of

_Table = Mapping[torch._ops.OperatorBase, Callable[..., Any]]


@cache
def decompositions() -> _Table:
    """A table for AOTAutograd.

    Those into core ATen come first; torch's others are for operators outside of it.
    """
    others = {op: made for op, made in decomposition_table.items() if not _is_core(op)}
    known: dict[Any, Callable[..., Any]] = {**others, **default_decompositions()}
    kept = _WRITING | {op for op in known if converter_of(str(op)) is not None}
    return {op: made for op, made in known.items() if op not in kept}


_WRITING = {torch.ops.aten.complex.default, torch.ops.aten.polar.default}
"""Operators that torch decomposes into writes to memory, which it then finds no input for."""


def _is_core(op: torch._ops.OperatorBase) -> bool:
    return isinstance(op, torch._ops.OpOverload) and torch.Tag.core in op.tags


def decomposed(program: ExportedProgram) -> ExportedProgram:
    """`program` without what has no converter, where torch decomposes it.

    It is ``program.run_decompositions``, which registers all composite operators of torch anew at
    each call, for half a second; that is needed only for those that are not decomposed as they are
    by themselves.
    """
    composites, others = _parts()
    decompose: Any = _disable_prexisiting_fake_mode(_decompose_exported_program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch warns of itself
        return decompose(
            program,
            cia_to_decomp=dict(composites),
            python_decomp_table=dict(others),
            joint_loss_index=None,
            decompose_custom_triton_ops=False,
        )


@cache
def _parts() -> tuple[_Table, _Table]:
    """What composite operators become, if not what they are composed of, and all others."""
    composites, others = _split_decomp_table_to_cia_and_python_decomp(dict(decompositions()))
    return {op: made for op, made in composites.items() if not _is_by_itself(made)}, others


def _is_by_itself(made: Callable[..., Any]) -> bool:
    return isinstance(made, partial) and made.func.__name__ == "_special_op_to_decompose_cia"
