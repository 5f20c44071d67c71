"""The names that users gave the dimensions of an exported program."""

from typing import Any

import torch
from torch.export import ExportedProgram


def symbol_names(program: ExportedProgram) -> dict[str, str]:
    """Our names by torch's symbols: ``{"s77": "batch"}``.

    A dimension without a name is called after the first input and axis that have it: ``x_0``.
    """
    names: dict[str, str] = {}
    unnamed: dict[str, str] = {}
    for node in program.graph.nodes:
        value: Any = node.meta.get("val")
        if node.op != "placeholder" or not isinstance(value, torch.Tensor):
            continue
        for axis, size in enumerate(value.shape):
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                unnamed.setdefault(size.node.expr.name, f"{node.name}_{axis}")
                names |= _given(size.node.shape_env)
    return unnamed | {symbol: name for symbol, name in names.items() if name.isidentifier()}


def _given(env: Any) -> dict[str, str]:
    """The names that a shape environment has for its symbols."""
    debug = env.source_name_to_debug_name
    return {
        str(symbol): debug.get(source, source)
        for source, symbol in env.source_to_var.items()
        if source.isidentifier() or source in debug
    }
