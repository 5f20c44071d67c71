"""``from relax_egraph.script import ir as I``: modules, in Python files."""

import inspect
import sys
from typing import Any

from relax_egraph.script.decorators import SPOKEN, module_of


def ir_module(
    definition: type | None = None, /, *, s_tir: bool = True, check_well_formed: bool = True
) -> Any:
    """Read the decorated class as an `IRModule`; its methods are decorated as its functions.

    The options of TVM change nothing here.  Raises `ScriptError` at the place in the file.
    """
    del s_tir, check_well_formed
    if definition is None:
        return ir_module
    frame = inspect.currentframe()
    return module_of(definition, frame and frame.f_back)


SPOKEN[id(sys.modules[__name__])] = "I"
SPOKEN[id(ir_module)] = "I.ir_module"
