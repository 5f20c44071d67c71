"""E-graphs in the JSON form of egraph-serialize, read and checked.

``{"nodes": {id: {"op", "children": [id], "eclass", "cost", "subsumed"}}, "root_eclasses": [..]}``.
Children are ids of nodes, and stand for their classes.  The defaults are those of egraph-serialize:
``children`` empty, ``cost`` 1, ``subsumed`` false.  Other fields are ignored.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

from relax_egraph.errors import ExtractionError, Span, TextError
from relax_egraph.extract.problem import Candidate, Problem


@dataclass(frozen=True, slots=True)
class SerializedNode:
    """An e-node: `children` are ids of nodes.  A node of infinite cost is never extracted."""

    op: str
    children: tuple[str, ...]
    eclass: str
    cost: float
    subsumed: bool


@dataclass(frozen=True, slots=True)
class SerializedEGraph:
    """A checked e-graph: every child is a node, every root a class that has nodes.

    `name` is its source, for errors.
    """

    name: str
    nodes: Mapping[str, SerializedNode]
    roots: tuple[str, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, in the order of their first nodes."""
        return tuple(dict.fromkeys(node.eclass for node in self.nodes.values()))


@dataclass(frozen=True, slots=True)
class Numbered:
    """The selection problem of an e-graph, with its classes and nodes by number."""

    problem: Problem
    classes: tuple[str, ...]
    nodes: tuple[str, ...]


def numbered(egraph: SerializedEGraph) -> Numbered:
    """The selection problem of `egraph`, without subsumed nodes and nodes of infinite cost."""
    classes = egraph.classes
    place = {c: number for number, c in enumerate(classes)}
    usable = [
        key for key, node in egraph.nodes.items() if not node.subsumed and math.isfinite(node.cost)
    ]
    candidates = tuple(
        Candidate(
            place[node.eclass],
            frozenset(place[egraph.nodes[child].eclass] for child in node.children),
            node.cost,
        )
        for node in (egraph.nodes[key] for key in usable)
    )
    roots = tuple(dict.fromkeys(place[root] for root in egraph.roots))
    return Numbered(Problem(candidates, roots), classes, tuple(usable))


def read_egraph(path: Path) -> SerializedEGraph:
    """Read a file.

    Raises `TextError` if it is no JSON, `ExtractionError` if it is no e-graph, and `OSError`.
    """
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ExtractionError(f"{path}: byte {error.start} is no UTF-8: needs JSON") from None
    return egraph_of(_parsed(text, str(path)), str(path))


def _parsed(text: str, name: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            seen = set[str]()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))
            raise ExtractionError(f"{name}: the key {twice!r} is there twice in one object")
        return result

    try:
        return json.loads(text, object_pairs_hook=once, parse_int=float)
    except json.JSONDecodeError as error:
        lines = error.doc.split("\n")
        line = lines[error.lineno - 1] if error.lineno <= len(lines) else ""
        span = Span(name, error.lineno, error.colno)
        raise TextError(span, f"no JSON: {error.msg}", line) from None
    except RecursionError:
        raise ExtractionError(f"{name}: nested too deeply: needs an e-graph") from None


def egraph_of(document: object, name: str = "e-graph") -> SerializedEGraph:
    """Check a document that is read; `name` is its source, for errors.

    Raises `ExtractionError`.
    """
    return _Checker(name).egraph(document)


@dataclass(frozen=True, slots=True)
class _Checker:
    name: str

    def egraph(self, document: object) -> SerializedEGraph:
        fields = self._object(document, "the document", '{"nodes": .., "root_eclasses": [..]}')
        for needed in ("nodes", "root_eclasses"):
            if needed not in fields:
                self._refuse(f"there is no {needed!r}")
        entries = self._object(fields["nodes"], "'nodes'", "an object of nodes by their ids")
        nodes = {key: self._node(key, entry) for key, entry in entries.items()}
        for key, node in nodes.items():
            for child in node.children:
                if child not in nodes:
                    is_class = any(child == other.eclass for other in nodes.values())
                    note = ", but the id of a class" if is_class else ""
                    self._refuse(f"node {key!r}: child {child!r} is no id of a node{note}")
        total = sum(node.cost for node in nodes.values() if math.isfinite(node.cost))
        if not math.isfinite(total):
            self._refuse("the costs add up to more than 1.8e308: needs smaller ones")
        roots = self._roots(fields["root_eclasses"], nodes)
        return SerializedEGraph(self.name, nodes, roots)

    def _node(self, key: str, entry: object) -> SerializedNode:
        where = f"node {self._string(key, 'the id of a node')!r}"
        fields = self._object(entry, where, '{"op", "children", "eclass", "cost"}')
        for needed in ("op", "eclass"):
            if needed not in fields:
                self._refuse(f"{where}: there is no {needed!r}")
        children = self._list(fields.get("children", ()), f"{where}: 'children'", "ids of nodes")
        subsumed = fields.get("subsumed", False)
        if not isinstance(subsumed, bool):
            self._refuse(f"{where}: 'subsumed' is {_shown(subsumed)}: needs true or false")
        return SerializedNode(
            self._string(fields["op"], f"{where}: 'op'"),
            tuple(self._string(child, f"{where}: a child") for child in children),
            self._string(fields["eclass"], f"{where}: 'eclass'"),
            self._cost(fields.get("cost", 1.0), where),
            subsumed,
        )

    def _cost(self, cost: object, where: str) -> float:
        if isinstance(cost, bool) or not isinstance(cost, int | float):
            self._refuse(f"{where}: 'cost' is {_shown(cost)}: needs a number")
        try:
            value = float(cost)
        except OverflowError:
            value = math.inf if cost > 0 else -math.inf
        if not value >= 0:
            self._refuse(f"{where}: 'cost' is {value:g}: needs a number that is not negative")
        return value

    def _roots(self, entry: object, nodes: Mapping[str, SerializedNode]) -> tuple[str, ...]:
        known = {node.eclass for node in nodes.values()}
        items = self._list(entry, "'root_eclasses'", "ids of classes")
        roots = tuple(self._string(item, "a root") for item in items)
        if not roots:
            self._refuse("'root_eclasses' is empty: needs what to extract")
        for root in roots:
            if root not in known:
                note = (
                    f"; node {root!r} is of class {nodes[root].eclass!r}" if root in nodes else ""
                )
                self._refuse(f"root {root!r} is no class of a node: needs canonical ids{note}")
        return roots

    def _object(self, value: object, what: str, needed: str) -> Mapping[str, object]:
        if not isinstance(value, Mapping):
            self._refuse(f"{what} is {_shown(value)}: needs {needed}")
        return cast("Mapping[str, object]", value)

    def _list(self, value: object, what: str, needed: str) -> Sequence[object]:
        if not isinstance(value, list | tuple):
            self._refuse(f"{what} is {_shown(value)}: needs a list of {needed}")
        return cast("Sequence[object]", value)

    def _string(self, value: object, what: str) -> str:
        if not isinstance(value, str):
            self._refuse(f"{what} is {_shown(value)}: needs a string")
        return value

    def _refuse(self, fault: str) -> NoReturn:
        raise ExtractionError(f"{self.name}: {fault}")


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else json.dumps(value, default=repr)
