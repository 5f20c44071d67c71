"""``from relax_egraph.script import ir as I``: modules, in Python files."""

import inspect
import sys
from typing import Any

from relax_egraph.script.decorators import SPOKEN, module_of


def ir_module(definition: type) -> Any:
    """Read the decorated class as an `IRModule`; its methods are decorated as its functions.

    Raises `ScriptError` at the place in the file.
    """
    frame = inspect.currentframe()
    return module_of(definition, frame and frame.f_back)


SPOKEN[id(sys.modules[__name__])] = "I"
SPOKEN[id(ir_module)] = "I.ir_module"
