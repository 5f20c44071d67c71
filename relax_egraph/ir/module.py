"""A module: functions by name, of the graph level and of the loop level."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from relax_egraph.base.parameters import (
    TEXT,
    Kind,
    check_fields,
    collection,
    instance,
    mapping,
)
from relax_egraph.errors import UnknownFunction
from relax_egraph.ir.expr import Function, FunctionAttr, FunctionAttrs
from relax_egraph.ir.message import counted, some
from relax_egraph.ir.struct_info import StructInfo
from relax_egraph.ir.text import Shown


class BaseFunc(Protocol):
    """A function of a module: a relax `Function`, or a ``tir.PrimFunc``."""

    @property
    def struct_info(self) -> StructInfo:
        """The signature that a caller sees."""
        ...

    @property
    def attrs(self) -> Mapping[str, Any]:
        """Attributes of the function."""
        ...


_FIELDS = {
    "functions": mapping(
        "functions by name",
        Kind("a function", lambda value: hasattr(value, "body") and hasattr(value, "attrs")),
    ),
    "attrs": mapping("attributes by name"),
    "global_infos": mapping("lists of texts by name", collection("a sequence of texts", TEXT)),
}


@dataclass(frozen=True, slots=True, eq=False)
class IRModule(Shown):
    """Functions by name, in order of definition.

    `attrs` and `global_infos` are what TVM says of the whole module, such as its devices: they are
    kept and printed, and change nothing here.  A global info is its text in a script.
    """

    functions: Mapping[str, BaseFunc] = field(default_factory=dict[str, BaseFunc])
    attrs: FunctionAttrs = field(default_factory=dict[str, FunctionAttr])
    global_infos: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def __post_init__(self) -> None:
        check_fields(self, _FIELDS)

    def __getitem__(self, name: str) -> BaseFunc:
        if name not in self.functions:
            raise UnknownFunction.among(name, "in the module", sorted(self.functions))
        return self.functions[name]

    def __contains__(self, name: object) -> bool:
        return name in self.functions

    def relax_functions(self) -> Iterator[tuple[str, Function]]:
        """The functions of the graph level, by name, in order."""
        for name, function in self.functions.items():
            if isinstance(function, Function):
                yield name, function

    def __str__(self) -> str:
        return self.script()

    def __repr__(self) -> str:
        params = {name: [p.name for p in f.params] for name, f in self.relax_functions()}
        relax = [f"{name}({some(names)})" for name, names in params.items()]
        loops = len(self.functions) - len(relax)
        parts = some(relax), counted(loops, "loop function") * bool(loops)
        return f"<IRModule: {' and '.join(filter(None, parts)) or 'no function'}>"


MODULE = instance(
    "an IRModule: rx.parse makes one of text, rx.load_module of a file, rx.from_onnx of a model",
    IRModule,
)
