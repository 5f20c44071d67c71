"""An e-graph's database as Python values: what ``freeze`` hands out, decoded.

``freeze`` reads everything at once (a microsecond a row); egglog's own extraction and printing
write terms as trees, which are exponential in a graph.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from egglog.bindings import EGraph, FrozenRow, Value

from relax_egraph.egraph.view import LEAF, LOAD, OPAQUE, SCALAR, STORE, ClassId, ENode
from relax_egraph.egraph.vocabulary import SORT_OF_ATTR, operators
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.struct_info import Shape, ShapeStructInfo

Key: TypeAlias = tuple[str, Value]
"""A class as egglog knows it: its sort and its value there, which is comparable within the sort."""


@dataclass(frozen=True, slots=True)
class Term:
    """A node over classes as egglog knows them."""

    op: str
    children: tuple[Key | ShapeStructInfo, ...] = ()
    attrs: tuple[tuple[str, Attr], ...] = ()
    key: int = -1
    scalar: float = 0.0

    @property
    def classes(self) -> tuple[Key, ...]:
        """The classes among the children."""
        return tuple(c for c in self.children if isinstance(c, tuple))

    def numbered(self, numbers: Mapping[Key, ClassId]) -> ENode:
        """The node, over numbered classes."""
        children = tuple(numbers[c] if isinstance(c, tuple) else c for c in self.children)
        return ENode(self.op, children, self.attrs, self.key, self.scalar)


class Tables:
    """The database of `egraph` at the time of making; rows come in a fixed order."""

    def __init__(self, egraph: EGraph) -> None:
        self._egraph = egraph
        self._functions = egraph.freeze().functions
        self._decoded: dict[Key, Any] = {}

    def rows(self, name: str) -> list[FrozenRow]:
        """The rows of a function that are not subsumed."""
        function = self._functions.get(name)
        kept = [row for row in function.rows if not row.subsumed] if function else []
        return sorted(kept, key=lambda row: (row.output, row.inputs))

    def fact(self, name: str) -> dict[Value, Value]:
        """A function of one tensor, by tensor."""
        return {row.inputs[0]: row.output for row in self.rows(name)}

    @cached_property
    def loaded(self) -> dict[ClassId, Key]:
        """The classes of the loaded values."""
        return {self.decode("i64", r.inputs[0]): ("Tensor", r.output) for r in self.rows("Value")}

    @cached_property
    def lets(self) -> dict[str, Key]:
        """The classes of global variables."""
        return {
            name: (function.output_sort, row.output)
            for name, function in self._functions.items()
            if function.is_let_binding
            for row in function.rows
        }

    @cached_property
    def terms(self) -> dict[Key, list[Term]]:
        """The nodes of each class; without those that stand over their own class."""
        found: dict[Key, list[Term]] = defaultdict(list)
        for key, term in self._terms():
            if key not in term.classes:
                found[key].append(term)
        return found

    @cached_property
    def shapes(self) -> dict[Value, Shape]:
        """The shapes that are known."""
        return {t: self.decode("Shape", s) for t, s in self.fact("shape-of").items()}

    @cached_property
    def dtypes(self) -> dict[Value, str]:
        """The dtypes that are known."""
        return {t: self.decode("String", d) for t, d in self.fact("dtype-of").items()}

    @cached_property
    def ranks(self) -> dict[Value, int]:
        """The ranks that are known."""
        return {t: self.decode("i64", n) for t, n in self.fact("rank-of").items()}

    @cached_property
    def scalars(self) -> dict[Value, float]:
        """The values of tensors whose elements are all one constant."""
        return {t: self.decode("f64", c) for t, c in self.fact("const-scalar").items()}

    @cached_property
    def constants(self) -> set[Value]:
        """The tensors that depend on constants only."""
        return {row.inputs[0] for row in self.rows("is-const")}

    @cached_property
    def memory(self) -> dict[Value, Value]:
        """For each kernel class a tensor of its value: the one that stores it, or that it loads."""
        loads = {row.output: row.inputs[0] for row in self.rows("K.load")}
        stores = {row.inputs[0]: row.output for row in self.rows("K.store")}
        return loads | stores

    @cached_property
    def _dims(self) -> dict[Value, Dim]:
        """Dimensions by class; of several texts the shortest."""
        texts: dict[Value, str] = {}
        for row in self.rows("DimSym"):
            text = self.decode("String", row.inputs[0])
            known = texts.get(row.output, text)
            texts[row.output] = min(text, known, key=lambda t: (len(t), t))
        return {value: dims.parse(text) for value, text in texts.items()}

    def decode(self, sort: str, value: Value) -> Any:
        """The Python value of a primitive, an `Axes`, a `Shape` or a `Dim`."""
        key = (sort, value)
        if key not in self._decoded:
            self._decoded[key] = self._decode(sort, value)
        return self._decoded[key]

    def _decode(self, sort: str, value: Value) -> Any:
        match sort:
            case "i64":
                return self._egraph.value_to_i64(value)
            case "f64":
                return self._egraph.value_to_f64(value)
            case "bool":
                return self._egraph.value_to_bool(value)
            case "String":
                return self._egraph.value_to_string(value)
            case "Axes":
                return tuple(self._egraph.value_to_i64(v) for v in self._egraph.value_to_vec(value))
            case "Shape":
                return tuple(self._dims[v] for v in self._egraph.value_to_vec(value))
            case _:
                raise ValueError(f"no value of sort {sort} is read back")

    def _terms(self) -> Iterator[tuple[Key, Term]]:
        for row in self.rows("Leaf"):
            yield ("Tensor", row.output), Term(LEAF, key=self.decode("i64", row.inputs[0]))
        for row in self.rows("R.const"):
            yield ("Tensor", row.output), Term(SCALAR, scalar=self.decode("f64", row.inputs[0]))
        for row in self.rows("Opaque"):
            key, operands = row.inputs
            children = tuple(("Tensor", v) for v in self._egraph.value_to_vec(operands))
            yield ("Tensor", row.output), Term(OPAQUE, children, key=self.decode("i64", key))
        for row in self.rows("K.store"):
            yield ("Tensor", row.output), Term(STORE, (("Kernel", row.inputs[0]),))
        for row in self.rows("K.load"):
            yield ("Kernel", row.output), Term(LOAD, (("Tensor", row.inputs[0]),))
        for prefix, sort in (("R", "Tensor"), ("K", "Kernel")):
            for name in operators():
                for row in self.rows(f"{prefix}.{name}"):
                    yield (sort, row.output), self._operator(name, sort, row)

    def _operator(self, name: str, sort: str, row: FrozenRow) -> Term:
        op = operators()[name].op
        count = len(op.operands)
        children = tuple(
            (sort, value) if operand.kind == "tensor" else self._shape(value)
            for operand, value in zip(op.operands, row.inputs[:count], strict=True)
        )
        attrs = tuple(
            (attr.name, self.decode(SORT_OF_ATTR[attr.kind], value))
            for attr, value in zip(op.attrs, row.inputs[count:], strict=True)
        )
        return Term(name, children, attrs)

    def _shape(self, value: Value) -> ShapeStructInfo:
        shape = self.decode("Shape", value)
        return ShapeStructInfo(shape, len(shape))
