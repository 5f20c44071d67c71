"""Declarations of a loop function: parameters, buffers, dimension symbols."""

import ast
from collections.abc import Sequence

from relax_egraph.errors import nearest
from relax_egraph.ir.dtypes import DTYPES, is_float
from relax_egraph.script.annotations import Annotations
from relax_egraph.script.literals import read_dtype, read_string
from relax_egraph.script.operators import is_number, unwrapped
from relax_egraph.script.scope import Globals
from relax_egraph.script.signatures import leading_symbols, parameters
from relax_egraph.script.source import arguments, dotted
from relax_egraph.script.subscripts import as_call
from relax_egraph.script.tir_expressions import Meaning
from relax_egraph.tir.expr import HANDLE, Buffer, BufferLoad, DimSymbol

_SCALARS = frozenset({"T.int64", "T.int32"})

_HINTS = ("offset_factor", "align")
"""Arguments of buffers without a meaning here: all are contiguous, and begin at a cache line."""


class TirDeclarations:
    """Reads the signature on construction, then the declarations of the body.

    Declarations extend `names`, the scope of the rest of the function.
    """

    def __init__(self, module: Globals, node: ast.FunctionDef, names: dict[str, Meaning]) -> None:
        self.symbols = module.symbols | leading_symbols(node.body)
        self.scalars: list[str] = []
        self._source = module.source
        self._names = names
        self._annotations = Annotations(self._source, self.symbols)
        self._params: dict[str, Buffer] = {}
        self._signature(parameters(node, module))

    def params(self) -> tuple[Buffer, ...]:
        """The buffers that are parameters, some of them handles that nothing is known of."""
        return tuple(self._params.values())

    def buffer(self, name: str, node: ast.Call, *, alloc: bool = False) -> Buffer:
        """``T.Buffer(shape, dtype)`` and its like; its shape defines symbols unless `alloc`."""
        by_name = arguments(self._source, node, ("shape", "dtype", "scope", *_HINTS))
        if "shape" not in by_name:
            raise self._source.error(node, f"{dotted(node.func)} takes a shape and a dtype")
        dtype = read_dtype(self._source, by_name["dtype"]) if "dtype" in by_name else "float32"
        scope = (
            read_string(self._source, by_name["scope"], "the scope") if "scope" in by_name else ""
        )
        if scope not in ("", "global") and not (alloc and scope == "local"):
            message = f'unsupported scope "{scope}" of {name}'
            raise self._source.error(by_name["scope"], message)
        annotations = self._annotations if alloc else self._annotations.pattern()
        written = by_name["shape"]
        if is_number(unwrapped(unwrapped(written, "T.int64"), "T.int32")):
            written = ast.copy_location(ast.Tuple([written]), written)
        match written:
            case ast.Attribute(value=ast.Name(id=other), attr="shape") if isinstance(
                known := self._names.get(other), Buffer
            ):
                shape = known.shape
            case _:
                shape = annotations.shape(written)
        buffer = Buffer(name, shape, dtype, "local" if scope == "local" else "global")
        self._names[name] = buffer
        self.name_symbols()
        return buffer

    def match_buffer(self, name: str, node: ast.Call) -> None:
        """``X = T.match_buffer(x, shape, dtype)``: the buffer behind the handle `x`."""
        if not node.args or not isinstance(node.args[0], ast.Name):
            raise self._source.error(node, "T.match_buffer takes a parameter, a shape and a dtype")
        handle = node.args[0].id
        if handle not in self._params:
            close = nearest(handle, self._params)
            raise self._source.error(node.args[0], f"no parameter {handle}", close)
        rest = ast.copy_location(ast.Call(node.func, node.args[1:], node.keywords), node)
        self._params[handle] = self.buffer(name, rest)

    def _handle(self, name: str) -> None:
        """A parameter whose shape ``T.match_buffer`` says, or nothing."""
        self._params[name] = Buffer(name, (), HANDLE)
        self._names[name] = self._params[name]

    def _scalar(self, name: str, dtype: str) -> None:
        """A parameter that is a float: a buffer of rank 0, whose name is its element."""
        self._params[name] = Buffer(name, (), dtype)
        self._names[name] = BufferLoad(self._params[name], ())

    def name_symbols(self) -> None:
        """Define every symbol whose name no variable has."""
        for symbol in sorted(self.symbols):
            self._names.setdefault(symbol, DimSymbol(symbol))

    def _signature(self, params: Sequence[ast.arg]) -> None:
        for param in params:
            if param.annotation is not None and dotted(param.annotation) in _SCALARS:
                self.scalars.append(param.arg)
        self.symbols.update(self.scalars)
        for param in params:
            match param.annotation:
                case ast.Call(func=func) as annotation if dotted(func) == "T.Buffer":
                    self._params[param.arg] = self.buffer(param.arg, annotation)
                case ast.Subscript(value=named) as annotation if dotted(named) == "T.Buffer":
                    call = as_call(annotation, lambda _: False)
                    self._params[param.arg] = self.buffer(param.arg, call)
                case ast.expr() as annotation if dotted(annotation) in _SCALARS:
                    pass
                case ast.expr() as annotation if (dtype := _float(annotation)) is not None:
                    self._scalar(param.arg, dtype)
                case None:
                    self._handle(param.arg)
                case ast.Call(func=named) | named if dotted(named) == "T.handle":
                    self._handle(param.arg)
                case _:
                    message = f"parameter {param.arg} needs T.Buffer(…), T.handle or T.int64"
                    raise self._source.error(param, message)
        self.name_symbols()


def _float(annotation: ast.expr) -> str | None:
    """The dtype of ``T.float32``."""
    dtype = dotted(annotation).removeprefix("T.")
    return dtype if dtype in DTYPES and is_float(dtype) else None
