"""Prints struct info as annotations, in signatures and in bodies."""

from collections.abc import Mapping

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, Var
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    Shape,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)


class InfoPrinter:
    """Prints struct info; `names` are the names of the variables so far.

    In a signature, where no symbol is declared yet, dimensions with symbols are quoted.
    """

    def __init__(self, names: Mapping[Var, str], *, signature: bool = False) -> None:
        self._names = names
        self._signature = signature
        self._seen: dict[StructInfo, str] = {}

    def text(self, info: StructInfo) -> str:
        """`info`, as the parser reads it."""
        if info not in self._seen:
            self._seen[info] = self._text(info)
        return self._seen[info]

    def shape(self, shape: Shape) -> str:
        """``(n, 4)``, ``(n,)``, ``()``."""
        comma = "," if len(shape) == 1 else ""
        return f"({', '.join(map(self.dim, shape))}{comma})"

    def dim(self, dim: Dim) -> str:
        """``n * 2``, in a signature ``"n * 2"``."""
        text = dims.text(dim)
        return text if isinstance(dim, int) or not self._signature else f'"{text}"'

    def _text(self, info: StructInfo) -> str:
        match info:
            case TensorStructInfo():
                return f"R.Tensor({', '.join(self._tensor(info))})"
            case ShapeStructInfo(values=None, ndim=ndim):
                return f"R.Shape(ndim={ndim})" if ndim >= 0 else "R.Shape"
            case ShapeStructInfo(values=values):
                return f"R.Shape({self.shape(values or ())})"
            case TupleStructInfo(fields=fields):
                return f"R.Tuple({', '.join(map(self._text, fields))})"
            case PrimStructInfo(dtype=dtype, value=None):
                return f'R.Prim("{dtype}")'
            case PrimStructInfo(dtype=dtype, value=value):
                head = "" if dtype == "int64" else f'"{dtype}", '
                return f"R.Prim({head}value={self.dim(value or 0)})"
            case ObjectStructInfo():
                return "R.Object"
            case FuncStructInfo():
                return self._callable(info)

    def _tensor(self, info: TensorStructInfo) -> list[str]:
        parts: list[str] = []
        ndim = info.ndim
        if info.dims is not None:
            parts.append(self.shape(info.dims))
            ndim = -1
        elif (name := self._variable(info.shape)) is not None:
            parts.append(name)
            known = info.shape and info.shape.struct_info
            if isinstance(known, ShapeStructInfo) and known.ndim == ndim:
                ndim = -1
        if info.dtype is not None:
            parts.append(f'"{info.dtype}"' if parts else f'dtype="{info.dtype}"')
        if ndim >= 0:
            parts.append(f"ndim={ndim}")
        return parts

    def _variable(self, shape: Expr | None) -> str | None:
        """The name of a computed shape that is in scope, else only its rank."""
        return self._names.get(shape) if isinstance(shape, Var) else None

    def _callable(self, info: FuncStructInfo) -> str:
        parts: list[str] = []
        if info.params is not None:
            comma = "," if len(info.params) == 1 else ""
            parts.append(f"({', '.join(map(self._text, info.params))}{comma})")
        named = {"ret": "R.Object", "purity": "True"}
        others = {"ret": self._text(info.ret), "purity": str(info.purity)}
        if info.params is None:
            parts += [f"{key}={text}" for key, text in others.items() if text != named[key]]
        else:
            parts += others.values()
        return f"R.Callable({', '.join(parts)})" if parts else "R.Callable"
