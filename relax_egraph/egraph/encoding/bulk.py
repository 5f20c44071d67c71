"""Bulk loading of a view into an e-graph.

Nodes and facts go through tab-separated files, one for each operator; one rule for each file adds
them.  This loads about 100 000 nodes a second, a command per node only 4 000.  Shapes, axes, texts
and truth values are numbered, and a rule without premises maps each number to its value.
"""

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from relax_egraph.egraph.bindings import EGraph
from relax_egraph.egraph.commands import run_text
from relax_egraph.egraph.encoding import literals
from relax_egraph.egraph.encoding.constructors import Constructor, constructor_of, constructors
from relax_egraph.egraph.node import OPAQUE
from relax_egraph.egraph.rulebook.vocabulary import USES, Param
from relax_egraph.egraph.view import ClassId, ENode, View
from relax_egraph.ir.struct_info import Shape

_MEMORY = Path("/dev/shm")
_PLAIN = {"i64", "f64"}
_LEFT_OUT = {"Tensor": "R.none", "Prim": "Prim.none"}


def load_view(egraph: EGraph, view: View, absent: Collection[str] = ()) -> None:
    """Add the classes of `view`, which are tensors and tuples, with their nodes and facts.

    Class ``i`` is the class of ``(Value i)``, or of ``(TupleValue i)``.  The facts in `absent` are
    left out.  Raises ``ValueError`` if an attribute is not canonical or a shape operand is unknown.
    """
    loading = _Loading()
    _load_uses(loading, view, frozenset(absent))
    for number, eclass in view.classes.items():
        if eclass.sort == "kernel":
            raise ValueError(f"class {number} is a kernel: only tensors are loaded")
        for node in eclass.nodes:
            loading.node(number, node)
        if eclass.sort == "tuple":
            continue
        loading.fact("source-index", number, ("i64", number))
        info = eclass.struct_info
        if info.dims is not None:
            loading.fact("shape-claim", number, loading.shape(info.dims))
        elif info.ndim >= 0:
            loading.fact("rank-of", number, ("i64", info.ndim))
        if info.dtype is not None:
            loading.fact(
                "dtype-claim", number, loading.literal("String", literals.string(info.dtype))
            )
        if eclass.is_const:
            loading.fact("is-const", number)
        if eclass.scalar is not None:
            loading.fact("const-scalar", number, ("f64", float(eclass.scalar)))
        for dtype, axis in eclass.narrow:
            text = loading.literal("String", literals.string(dtype))
            loading.fact("within-tolerance", number, text, ("i64", axis))
        if eclass.magnitude is not None and "magnitude-of" not in absent:
            loading.fact("magnitude-of", number, ("f64", eclass.magnitude))
        if eclass.elements_of is not None and "elements-of" not in absent:
            loading.fact("elements-of", number, ("Tensor", eclass.elements_of))
        if eclass.has_reciprocal and "has-reciprocal" not in absent:
            loading.fact("has-reciprocal", number)
    folder = _MEMORY if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) else None
    with TemporaryDirectory(dir=folder) as scratch:
        run_text(egraph, "\n".join(loading.program(Path(scratch))))


def _load_uses(loading: "_Loading", view: View, absent: frozenset[str]) -> None:
    """Add how often the program uses each of its values, and which are for one value alone.

    A view that was saturated before is no program: its values have several forms.
    """
    is_program = all(len(eclass.nodes) == 1 for eclass in view.classes.values())
    if not is_program or absent.issuperset(USES):
        return
    users: dict[ClassId, list[ClassId]] = {number: [] for number in view.classes}
    for user, eclass in view.classes.items():
        for node in eclass.nodes:
            for operand in node.operands:
                users[operand].append(user)
    for number, of in users.items():
        if view.classes[number].sort != "tensor":
            continue
        if "uses-of" not in absent:
            loading.fact("uses-of", number, ("i64", len(of) + view.roots.count(number)))
        alone = len({*of}) == 1 and "only-used-by" not in absent
        if alone and number not in view.roots and view.classes[of[0]].sort == "tensor":
            loading.fact("only-used-by", number, ("Tensor", of[0]))


Column = tuple[str, int | float]
"""A sort and a value; for a sort that files cannot store, the number of a literal."""


class _Loading:
    """Rows of nodes and facts by constructor, and the literals that they refer to."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
        self._literals: dict[str, dict[str, int]] = defaultdict(dict)

    def node(self, number: ClassId, node: ENode) -> None:
        constructor = constructor_of(node.op)
        columns = [
            column
            for param, arg in constructor.arguments(node)
            for column in self._columns(param, arg, constructor)
        ]
        self._row(constructor.head, number, columns)

    def fact(self, name: str, number: ClassId, *values: Column) -> None:
        self._row(name, number, values)

    def shape(self, shape: Shape) -> Column:
        return self.literal("Shape", literals.shape(shape))

    def literal(self, sort: str, text: str) -> Column:
        known = self._literals[sort]
        return sort, known.setdefault(text, len(known))

    def program(self, scratch: Path) -> Iterator[str]:
        """The commands that load all rows; writes their files to `scratch`."""
        for sort, texts in self._literals.items():
            yield f"(function engine/literal-{sort} (i64) {sort} :no-merge)"
            sets = " ".join(
                f"(set (engine/literal-{sort} {k}) {text})" for text, k in texts.items()
            )
            yield f'(rule () ({sets}) :ruleset load :name "load-literals-{sort}")'
        yield "(run-schedule (run load))"
        for k, ((target, sorts), rows) in enumerate(self._rows.items()):
            path = scratch / f"{k}.tsv"
            path.write_text("\n".join(rows) + "\n", "utf-8")
            columns = " ".join(s if s in _PLAIN else "i64" for s in ("i64", *sorts))
            yield f"(relation engine/load-{k} ({columns}))"
            yield f'(input engine/load-{k} "{path}")'
            rule = f"({_body(k, sorts)}) ({_head(target, sorts)})"
            yield f'(rule {rule} :ruleset load :name "load-{k}")'
        yield "(run-schedule (run load))"

    def _row(self, target: str, number: ClassId, columns: Iterable[Column]) -> None:
        columns = list(columns)
        row = "\t".join(str(v) for v in (number, *(value for _, value in columns)))
        self._rows[target, tuple(sort for sort, _ in columns)].append(row)

    def _columns(self, param: Param, arg: Any, constructor: Constructor) -> Iterator[Column]:
        sort, what = param.sort, constructor.head
        match sort:
            case "Tensor" | "Prim" if arg is None:
                yield _LEFT_OUT[sort], 0
            case "Tensor" | "Tuple":
                yield sort, arg
            case "Tensors" if constructor.op == OPAQUE:  # one file for each number of operands
                yield from (("Tensor", c) for c in arg)
            case "Tensors":
                yield self.literal(sort, literals.vector([f"(Value {c})" for c in arg]))
            case "Shape" if arg.values is None:
                raise ValueError(f"{what}: a shape operand is not known: {arg}")
            case "Shape":
                yield self.shape(arg.values)
            case "Prim":
                yield self.literal(sort, literals.prim(arg))
            case _:
                text = literals.attribute(sort, arg)
                if text is None:
                    which = f"{what}: attribute {param.name}"
                    raise ValueError(f"{which} is {arg!r}, which is not canonical")
                yield (sort, arg) if sort in _PLAIN else self.literal(sort, text)


_FUNCTIONS = {"rank-of", "const-scalar", "source-index", "magnitude-of"}
_RELATIONS = {
    *("shape-claim", "dtype-claim", "is-const", "has-reciprocal", "within-tolerance"),
    *("elements-of", *USES),
}


def _body(number: int, sorts: tuple[str, ...]) -> str:
    columns = " ".join(f"c{k}" for k in range(len(sorts)))
    literals = " ".join(
        f"(= v{k} (engine/literal-{sort} c{k}))"
        for k, sort in enumerate(sorts)
        if sort not in _TERMS
    )
    return f"(engine/load-{number} i {columns}) {literals}"


_TERMS: Mapping[str, str] = {
    "i64": "c{}",
    "f64": "c{}",
    "Tensor": "(Value c{})",
    "Tuple": "(TupleValue c{})",
    "R.none": "(R.none)",
    "Prim.none": "(Prim.none)",
}
"""The term for a column of each sort; columns of other sorts are numbers of literals."""


def _head(target: str, sorts: tuple[str, ...]) -> str:
    values = [_TERMS.get(sort, "v{}").format(k) for k, sort in enumerate(sorts)]
    if target in _FUNCTIONS:
        return f"(set ({target} (Value i)) {values[0]})"
    if target in _RELATIONS:
        return f"({target} (Value i) {' '.join(values)})"
    if target == "Opaque":
        key, *operands = values
        return f"(union (Value i) (Opaque {key} {literals.vector(operands)}))"
    named = "TupleValue" if constructors()[target].result == "Tuple" else "Value"
    return f"(union ({named} i) ({target} {' '.join(values)}))"
