"""The tables of an e-graph as Python values, decoded from egglog's ``freeze``.

``freeze`` reads all rows at once, in a microsecond a row.  egglog's own extraction and printing
expand terms to trees, which are exponential in the size of the graph.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from relax_egraph.egraph.bindings import EGraph, FrozenRow, Value
from relax_egraph.egraph.encoding.constructors import NONE, constructors
from relax_egraph.egraph.node import Node
from relax_egraph.egraph.view import ClassId
from relax_egraph.errors import SaturationError
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import PrimValue
from relax_egraph.ir.struct_info import Shape


class Key(NamedTuple):
    """A class in egglog: its sort, and its value, which is comparable within the sort."""

    sort: str
    value: Value


class Tables:
    """A snapshot of the database of `egraph`, with rows in a fixed order."""

    def __init__(self, egraph: EGraph) -> None:
        self._egraph = egraph
        self._functions = egraph.freeze().functions
        self._facts: dict[str, dict[Value, Value]] = {}
        self._decoded: dict[tuple[str, Value], Any] = {}
        self._rows: dict[str, Mapping[Value, Mapping[str, list[FrozenRow]]]] = {}

    def rows(self, name: str) -> list[FrozenRow]:
        """The rows of a function that are not subsumed, in order."""
        return sorted(self._unordered(name), key=lambda row: (row.output, row.inputs))

    def fact(self, name: str) -> dict[Value, Value]:
        """The values of a function of one tensor, by tensor."""
        return {row.inputs[0]: row.output for row in self._unordered(name)}

    def _unordered(self, name: str) -> Iterable[FrozenRow]:
        function = self._functions.get(name)
        return (row for row in function.rows if not row.subsumed) if function else ()

    @cached_property
    def loaded(self) -> dict[ClassId, Key]:
        """The classes of the loaded values."""
        return {
            self.decode("i64", row.inputs[0]): Key(sort, row.output)
            for name, sort in (("Value", "Tensor"), ("TupleValue", "Tuple"))
            for row in self.rows(name)
        }

    @cached_property
    def lets(self) -> dict[str, Key]:
        """The classes of global variables."""
        return {
            name: Key(function.output_sort, row.output)
            for name, function in self._functions.items()
            if function.is_let_binding
            for row in function.rows
        }

    @cached_property
    def nodes(self) -> dict[Key, list[Node[Key]]]:
        """The nodes of each class, without nodes over their own class."""
        nodes: dict[Key, list[Node[Key]]] = defaultdict(list)
        for key, node in self.all_nodes():
            if key not in node.operands:
                nodes[key].append(node)
        return nodes

    def nodes_at(self, key: Key) -> list[Node[Key]]:
        """The nodes of one class as in `nodes`, without decoding those of all classes."""
        pairs = self._rows_at(key.sort).get(key.value, {}).items()
        every = (
            node
            for name, rows in pairs
            for _, node in self._decoded_rows(name, sorted(rows, key=lambda row: row.inputs))
        )
        return [node for node in every if key not in node.operands]

    def _rows_at(self, sort: str) -> Mapping[Value, Mapping[str, list[FrozenRow]]]:
        """The rows of each class of `sort`, by their constructors."""
        if sort not in self._rows:
            by_class: dict[Value, dict[str, list[FrozenRow]]] = defaultdict(dict)
            for name, constructor in constructors().items():
                if constructor.result == sort:
                    for row in self._unordered(name):
                        by_class[row.output].setdefault(name, []).append(row)
            self._rows[sort] = by_class
        return self._rows[sort]

    def all_nodes(self) -> Iterator[tuple[Key, Node[Key]]]:
        """Every node and its class, in a fixed order."""
        return (pair for name in constructors() for pair in self.nodes_of(name))

    def nodes_of(self, name: str) -> Iterator[tuple[Key, Node[Key]]]:
        """The nodes of constructor `name`, each with its class."""
        return self._decoded_rows(name, self.rows(name))

    def _decoded_rows(
        self, name: str, rows: Iterable[FrozenRow]
    ) -> Iterator[tuple[Key, Node[Key]]]:
        constructor = constructors()[name]
        optional = constructor.optional
        sorts = (param.sort for param in constructor.params)
        readers = [self._reader(sort, k in optional) for k, sort in enumerate(sorts)]
        for row in rows:
            args = [read(value) for read, value in zip(readers, row.inputs, strict=True)]
            yield Key(constructor.result, row.output), constructor.node(args)

    def _reader(self, sort: str, optional: bool) -> Callable[[Value], Any]:
        """The decoder of an argument of `sort`."""
        if optional and sort == "Tensor":
            return lambda value: None if value in self._none else Key(sort, value)
        if sort in ("Tensor", "Kernel", "Tuple"):
            return lambda value: Key(sort, value)
        return lambda value: self.decode(sort, value)

    def shape(self, tensor: Value) -> Shape | None:
        """The shape of a tensor, if it is known."""
        return self._fact_of("shape-of", "Shape", tensor)

    def dtype(self, tensor: Value) -> str | None:
        """The dtype of a tensor, if it is known."""
        return self._fact_of("dtype-of", "String", tensor)

    def rank(self, tensor: Value) -> int | None:
        """The rank of a tensor, if it is known."""
        return self._fact_of("rank-of", "i64", tensor)

    def _fact_of(self, name: str, sort: str, tensor: Value) -> Any:
        if name not in self._facts:
            self._facts[name] = self.fact(name)
        value = self._facts[name].get(tensor)
        return None if value is None else self.decode(sort, value)

    @cached_property
    def dtypes(self) -> dict[Value, str]:
        """The known dtypes, by tensor."""
        return {t: self.decode("String", d) for t, d in self.fact("dtype-of").items()}

    @cached_property
    def scalars(self) -> dict[Value, float]:
        """The values of tensors whose elements are all one constant."""
        return {t: self.decode("f64", c) for t, c in self.fact("const-scalar").items()}

    @cached_property
    def magnitudes(self) -> dict[Value, float]:
        """The known magnitudes of tensors without NaN and infinities."""
        return {t: self.decode("f64", m) for t, m in self.fact("magnitude-of").items()}

    @cached_property
    def constants(self) -> set[Value]:
        """The tensors that depend on constants only."""
        return {row.inputs[0] for row in self._unordered("is-const")}

    @cached_property
    def invertible(self) -> set[Value]:
        """The constants no element of which is close to 0, or infinite."""
        return {row.inputs[0] for row in self._unordered("has-reciprocal")}

    @cached_property
    def narrow(self) -> dict[Value, tuple[str, int]]:
        """Constants that can be stored in fewer bits: the dtype, and the axis of the scale."""
        return {
            t: (self.decode("String", dtype), self.decode("i64", axis))
            for t, dtype, axis in (row.inputs for row in self._unordered("within-tolerance"))
        }

    @cached_property
    def memory(self) -> dict[Value, Value]:
        """The tensor class of each kernel class: the one that stores it, or that it loads."""
        loads = {row.output: row.inputs[0] for row in self.rows("K.load")}
        stores = {row.inputs[0]: row.output for row in self.rows("K.store")}
        return loads | stores

    @cached_property
    def _dims(self) -> dict[Value, Dim]:
        """Dimensions by class, from the shortest of its texts."""
        texts: dict[Value, str] = {}
        for row in self.rows("DimSym"):
            text = self.decode("String", row.inputs[0])
            known = texts.get(row.output, text)
            texts[row.output] = min(text, known, key=lambda t: (len(t), t))
        return {value: _dim_of(text) for value, text in texts.items()}

    def decode(self, sort: str, value: Value) -> Any:
        """The Python value of a primitive, a `Prim`, or a vector."""
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
            case "Floats":
                return tuple(self._egraph.value_to_f64(v) for v in self._egraph.value_to_vec(value))
            case "Tensors":
                return tuple(Key("Tensor", v) for v in self._egraph.value_to_vec(value))
            case "Prim":
                return self._prims[value]
            case "Dim":
                return self._dims[value]
            case "Shape":
                return tuple(self._dims[v] for v in self._egraph.value_to_vec(value))
            case _:
                raise ValueError(f"no value of sort {sort} is read back")

    @cached_property
    def _none(self) -> set[Value]:
        """The class of omitted operands."""
        return {row.output for row in self.rows(NONE)}

    @cached_property
    def _prims(self) -> dict[Value, PrimValue | None]:
        """The scalars of the host, by class."""
        prims: dict[Value, PrimValue | None] = {row.output: None for row in self.rows("Prim.none")}
        for row in self.rows("Prim.dim"):
            dim, dtype = row.inputs
            prims[row.output] = PrimValue(self._dims[dim], self.decode("String", dtype))
        for row in self.rows("Prim.number"):
            number, dtype = row.inputs
            value = self.decode("f64", number)
            prims[row.output] = PrimValue(value, self.decode("String", dtype))
        return prims


def _dim_of(text: str) -> Dim:
    try:
        return dims.parse(text)
    except ZeroDivisionError:
        raise SaturationError(f"a rule makes the dimension {text}, which has no value") from None
