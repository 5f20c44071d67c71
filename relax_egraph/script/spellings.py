"""Spellings of names in older scripts and in the newest TVM.

Today's are those of TVMScript 0.13 to 0.20; every module is printed in them.
"""

from collections.abc import Mapping
from functools import lru_cache

from relax_egraph.ir.dtypes import DTYPES

_PREFIXES = (
    *((f"{tir}.", "T.") for tir in ("tvm.script.tirx", "tvm.script.tir", "tvm.tirx", "tvm.tir")),
    *((f"{tir}.", "T.") for tir in ("tirx", "tir", "ty")),
    *((f"{relax}.", "R.") for relax in ("tvm.script.relax", "tvm.relax", "relax")),
    *(("tvm.script.ir.", "I."), ("tvm.script.", "I.")),
    *(("R.op.", "R."), ("R.vm.builtin.", "R.vm.")),
)
"""Prefixes of names and today's prefixes; the first that fits is replaced, repeatedly."""

_NAMES: Mapping[str, str] = {
    "ir_module": "I.ir_module",
    "R.func": "R.function",
    "R.outputs": "R.output",
    "R.call_tir_dyn": "R.call_tir",
    "R.Any": "R.Object",
    "R.dot": "R.matmul",
    "R.nn.matmul": "R.matmul",
    "R.concatenate": "R.concat",
    "R.transpose": "R.permute_dims",
    "R.emit_match_cast": "R.match_cast",
    "R.vm.alloc_storage": "R.memory.alloc_storage",
    "R.vm.alloc_tensor": "R.memory.alloc_tensor",
    "T.func": "T.prim_func",
    "T.Var": "T.var",
    "T.LetStmt": "T.let",
    "T.fabs": "T.abs",
    "T.Let": "T.let",
    "T.sblock": "T.block",
    "T.sblock_attr": "T.block_attr",
    "T.sblock_alloc_buffer": "T.alloc_buffer",
    "TypeVar": "T.var",
    "typing.TypeVar": "T.var",
    "T.TypeVar": "T.var",
}

KEYWORDS: Mapping[str, str] = {
    "out_ty": "out_sinfo",
    "ty_args": "sinfo_args",
    "ty": "struct_info",
}
"""Other names of arguments."""

ATTRIBUTES: Mapping[str, str] = {"Primitive": "primitive"}
"""Other names of a function's boolean attributes, whose values are 1 or 0."""

DTYPE_NAMES: Mapping[str, str] = {
    dtype.replace("uint", "u").replace("int", "i").replace("float", "f"): dtype
    for dtype in DTYPES
    if dtype != "bool"
}
"""The dtypes by their short names: ``f32``, ``i64``, ``u8``."""

MODULES: Mapping[str, str] = {
    **dict.fromkeys(("relax", "tvm.relax", "tvm.script.relax"), "R"),
    **dict.fromkeys(("tir", "tirx", "tvm.tir", "tvm.tirx"), "T"),
    **dict.fromkeys(("tvm.script.tir", "tvm.script.tirx"), "T"),
    "tvm.script.ir": "I",
    "relax_egraph.script.relax": "R",
    "relax_egraph.script.tir": "T",
    "relax_egraph.script.ir": "I",
}
"""The modules that a script may import, with their names here."""

_RENAMINGS = 4
"""The most rewrites of a name: ``tvm.script.relax.op.dot`` has three."""


@lru_cache(1 << 16)
def today(name: str) -> str:
    """Today's spelling of `name`, a dotted chain of names; most are unchanged."""
    for _ in range(_RENAMINGS):
        before = name
        name = _NAMES.get(name, name)
        for old, new in _PREFIXES:
            if name.startswith(old):
                name = new + name[len(old) :]
                break
        if name == before:
            break
    return name
