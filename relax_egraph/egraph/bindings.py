"""egglog's native engine, without its Python layer, which is slow to import.

A program that imports ``egglog`` itself, before or after, shares the engine with this one.
"""

import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING

_NAME = "egglog.bindings"


def _engine() -> ModuleType:
    """The extension module; not in ``sys.modules``, which would need its package as well."""
    if _NAME in sys.modules:
        return sys.modules[_NAME]
    package = find_spec("egglog")
    spec = PathFinder.find_spec(_NAME, package and package.submodule_search_locations)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {_NAME!r}", name=_NAME)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.pop(_NAME, None)
    return module


if TYPE_CHECKING:
    from egglog.bindings import EggSmolError as EggSmolError
    from egglog.bindings import EGraph as EGraph
    from egglog.bindings import FrozenRow as FrozenRow
    from egglog.bindings import PrintAllFunctionsSize as PrintAllFunctionsSize
    from egglog.bindings import RunScheduleOutput as RunScheduleOutput
    from egglog.bindings import Value as Value
else:
    _loaded = _engine()
    EggSmolError = _loaded.EggSmolError
    EGraph = _loaded.EGraph
    FrozenRow = _loaded.FrozenRow
    PrintAllFunctionsSize = _loaded.PrintAllFunctionsSize
    RunScheduleOutput = _loaded.RunScheduleOutput
    Value = _loaded.Value
