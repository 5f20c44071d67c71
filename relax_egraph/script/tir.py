"""``from relax_egraph.script import tir as T``: the loop level, in Python files.

`prim_func` reads the function that it decorates; all other names have a meaning in its body
only, except those of annotations that Python evaluates: `Buffer`, `handle`, and the dtypes;
``n = T.int64()`` declares a dimension symbol.
"""

import inspect
import sys
from collections import abc
from typing import Any

from relax_egraph.errors import nearest
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.script.decorators import SPOKEN, decorated
from relax_egraph.script.eager_names import check_annotations
from relax_egraph.script.placeholders import Annotation, Name, ScalarType, SymbolMaker
from relax_egraph.script.tir_expressions import KNOWN

Buffer: Any = Annotation("T.Buffer")
handle: Any = Annotation("T.handle")
var: Any = SymbolMaker("T.var")

_DTYPES = {dtype: ScalarType(f"T.{dtype}") for dtype in DTYPES}
_WORDS = (
    *("serial", "grid", "parallel", "vectorized", "unroll", "thread_binding"),
    *("block", "sblock", "init", "axis", "reads", "writes", "where", "block_attr", "sblock_attr"),
    *("alloc_buffer", "sblock_alloc_buffer", "match_buffer", "func_attr", "evaluate", "bind"),
    *("call_intrin", "address_of", "LetStmt", "meta_var", "reduce_axis"),
)


def _prim_func(
    definition: abc.Callable[..., Any] | None = None,
    /,
    *,
    private: bool = False,
    s_tir: bool = True,
    check_well_formed: bool = True,
) -> Any:
    """Read the decorated function as a `PrimFunc`; in a class the class does.

    Its options are read from the source too: `s_tir`, by which TVM allows blocks, and
    `check_well_formed` change nothing here.  Raises `ScriptError` at the place in the file.
    """
    del private, s_tir, check_well_formed
    frame = inspect.currentframe()
    return decorated(definition, "T.prim_func", frame and frame.f_back)


def __getattr__(name: str) -> Any:
    if name in ("prim_func", "func"):
        here = inspect.currentframe()
        check_annotations(here and here.f_back)
        return _prim_func
    if name in _DTYPES:
        return _DTYPES[name]
    known = (*_WORDS, *(k.removeprefix("T.") for k in KNOWN))
    if name in known:
        return Name(f"T.{name}")
    if name.startswith("__"):
        raise AttributeError(name)
    close = nearest(f"T.{name}", [f"T.{k}" for k in known])
    raise AttributeError(f"no name T.{name} in scripts{close and f', {close}'}")


def __dir__() -> list[str]:
    known = (k.removeprefix("T.") for k in KNOWN)
    return sorted({*globals(), "prim_func", *_WORDS, *_DTYPES, *known})


SPOKEN[id(sys.modules[__name__])] = "T"
SPOKEN[id(_prim_func)] = "T.prim_func"
