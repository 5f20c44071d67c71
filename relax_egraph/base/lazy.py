"""Packages that load their names on first use: to import one costs little.

if TYPE_CHECKING:
from relax_egraph import rules as rules
from relax_egraph.build import build as build

load_lazily(__name__, {"relax_egraph.build": ["build"]}, modules=["relax_egraph.rules"])
"""

import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def load_lazily(
    package: str, names: Mapping[str, Iterable[str]], modules: Iterable[str] = ()
) -> None:
    """Let `package` have `names`, by the module that they are from, and `modules` by their own."""
    module = sys.modules[package]
    homes = {name: home for home, there in names.items() for name in there}
    known = {path.rpartition(".")[2]: path for path in modules}
    vars(module).update(_homes=homes, _modules=known, __all__=sorted({*homes, *known}))
    module.__class__ = _LazyPackage


class _LazyPackage(ModuleType):
    _homes: Mapping[str, str]
    _modules: Mapping[str, str]

    def __getattr__(self, name: str) -> Any:
        if name in self._homes:
            value = getattr(import_module(self._homes[name]), name)
        elif name in self._modules:
            value = import_module(self._modules[name])
        else:
            message = f"module {self.__name__!r} has no attribute {name!r}"
            raise AttributeError(message, name=name, obj=self)  # Python suggests the nearest
        vars(self)[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # To import package.build sets the attribute build, which stays what is in that module.
        if not (isinstance(value, ModuleType) and self._homes.get(name) == value.__name__):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # A function that is sent to another process may refer to the package.
        return import_module, (self.__name__,)

    def __dir__(self) -> list[str]:
        own = (name for name in super().__dir__() if name.startswith("_"))
        return sorted({*own, *self._homes, *self._modules})
