"""Descriptions of an e-graph in the notation of rules, for failed checks of file tests."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast

from relax_egraph.egraph.bindings import EggSmolError, EGraph, FrozenRow, Value
from relax_egraph.egraph.rulebook.forms import Atom, Form, Tree, is_literal, written
from relax_egraph.egraph.rulebook.vocabulary import vocabulary_table

_ELEMENTS: Mapping[str, str] = {"Shape": "Dim", "Axes": "i64", "Tensors": "Tensor", "Floats": "f64"}
"""The sorts of the elements of vectors."""

_MOST = 8
"""The most nodes or facts in one list."""

_READ = 200
"""The most nodes of a class that are rendered to list the shortest."""

_DEEPEST, _WAYS = 3, 4
"""The deepest rendering of a term without a name, and the most nodes to choose from at a level."""


@dataclass(frozen=True, slots=True)
class Known:
    """A value in the e-graph and its sort; without `value`, a variable that matches any value."""

    sort: str = ""
    value: Value | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """The innermost term that is not in the e-graph."""

    term: Form


Lookup: TypeAlias = Known | Missing


class Held:
    """A snapshot of the database of `egraph`, with descriptions of its contents."""

    def __init__(self, egraph: EGraph) -> None:
        self._egraph = egraph
        self._functions = egraph.freeze().functions
        self._named: dict[tuple[str, Value | None], str] = {
            (f.output_sort, row.output): name
            for name, f in self._functions.items()
            if f.is_let_binding
            for row in f.rows
        }

    def instead(self, fact: Tree) -> tuple[str, ...]:
        """Lines about the actual contents for `fact`, which should hold and does not."""
        if not isinstance(fact, Form):
            return ()
        if fact.head != "=":
            return tuple(self._facts(fact))
        lines: list[str] = []
        for side in fact.items[1:]:
            match self.find(side):
                case Missing(term=term) if term is side:
                    lines.append(f"nothing is {written(side)}")
                case Missing(term=term):
                    lines.append(f"nothing is {written(side)}: there is no {written(term)}")
                case Known() as known if self._is_one(side, known):
                    lines += self._described(side, known)
                case _:
                    pass
        return tuple(lines)

    def anyway(self, fact: Tree) -> tuple[str, ...]:
        """Lines about the matches of `fact`, which should not hold."""
        if not isinstance(fact, Form):
            return ()
        if fact.head != "=":
            return tuple(self._rows_like(fact))
        for side in fact.items[1:]:
            known = self.find(side)
            if isinstance(known, Known) and self._is_one(side, known):
                return tuple(self._described(side, known))
        return ()

    def find(self, tree: Tree) -> Lookup:
        """The value of a term, or its innermost term that is missing."""
        if isinstance(tree, Atom):
            function = self._functions.get(tree.text)
            if function is not None and function.is_let_binding:
                return Known(function.output_sort, function.rows[0].output)
            return self._evaluated(tree) if is_literal(tree.text) else Known()
        parts = [self.find(item) for item in tree.items[1:]]
        missing = next((part for part in parts if isinstance(part, Missing)), None)
        if missing:
            return missing
        function = self._functions.get(tree.head)
        wanted = [part.value for part in parts if isinstance(part, Known)]
        if function is None:
            return Known() if None in wanted else self._evaluated(tree)
        rows = (row for row in function.rows if _fits(row, wanted))
        row = next(rows, None)
        return Known(function.output_sort, row.output) if row else Missing(tree)

    def _is_one(self, side: Tree, known: Known) -> bool:
        """Whether `side` has no variables and is not just the literal of its value."""
        if known.value is None or not (isinstance(side, Form) or self._has_nodes(known)):
            return False
        return all(is_literal(a) or a in self._functions for a in _arguments(side))

    def _evaluated(self, tree: Tree) -> Known:
        """The value of a literal or a primitive; unknown if egglog cannot evaluate it."""
        try:
            (check,) = cast(list[Any], self._egraph.parse_program(f"(check {written(tree)})"))
            sort, value = self._egraph.eval_expr(check.facts[0].expr)
        except EggSmolError:
            return Known()
        return Known(sort, value)

    def _described(self, side: Tree, known: Known) -> Iterator[str]:
        """Lines with other forms of a side of an equation: its nodes, or its plain value."""
        head = written(side)
        if not self._has_nodes(known):
            if (text := self.text(known)) != head:
                yield f"{head} is {text}"
            return
        nodes = [n for n in self._nodes(known) if n != head]
        names = [] if isinstance(side, Atom) else [self._named.get((known.sort, known.value), "")]
        every = [*filter(None, names), *nodes]
        yield from _listed(f"{head} is ", every or [f"nothing but a {known.sort}"])

    def _has_nodes(self, known: Known) -> bool:
        return (known.sort, known.value) in self._classes

    @cached_property
    def _classes(self) -> Mapping[tuple[str, Value | None], list[tuple[str, FrozenRow]]]:
        """The nodes of each class, in ascending order of their number of operands."""
        classes: dict[tuple[str, Value | None], list[tuple[str, FrozenRow]]] = defaultdict(list)
        for name, function in self._functions.items():
            if not function.is_let_binding and name not in _FACTS:
                for row in function.rows:
                    if not row.subsumed:
                        classes[function.output_sort, row.output].append((name, row))
        for nodes in classes.values():
            nodes.sort(key=lambda node: (len(node[1].inputs), node[0]))
        return classes

    def _rows_of(self, known: Known, most: int) -> Sequence[tuple[str, FrozenRow]]:
        """The first nodes of a class, at most `most`."""
        return self._classes.get((known.sort, known.value), [])[:most]

    def _nodes(self, known: Known) -> list[str]:
        terms = {self._term(n, row, 1) for n, row in self._rows_of(known, _READ)}
        return sorted(terms, key=_by_length)

    def text(self, known: Known, depth: int = 0) -> str:
        """A value in the notation of rules: the variable that names it, or else a term."""
        value = known.value
        assert value is not None
        if name := self._named.get((known.sort, value)):
            return name
        match known.sort:
            case "i64":
                return str(self._egraph.value_to_i64(value))
            case "f64":
                return repr(self._egraph.value_to_f64(value))
            case "bool":
                return str(self._egraph.value_to_bool(value)).lower()
            case "String":
                return f'"{self._egraph.value_to_string(value)}"'
            case sort if sort in _ELEMENTS:
                inside = (Known(_ELEMENTS[sort], v) for v in self._egraph.value_to_vec(value))
                return _applied("vec-of", [self.text(part, depth) for part in inside])
            case _ if depth < _DEEPEST:
                terms = [self._term(n, row, depth + 1) for n, row in self._rows_of(known, _WAYS)]
                return min(terms, key=lambda t: ("…" in t, *_by_length(t)), default="…")
            case _:
                return "…"

    def _term(self, name: str, row: FrozenRow, depth: int) -> str:
        sorts = self._functions[name].input_sorts
        parts = map(Known, sorts, row.inputs)
        return _applied(name, [self.text(part, depth) for part in parts])

    def _facts(self, fact: Form) -> Iterator[str]:
        """Lines about the table of the relation or term `fact`, which is missing."""
        function = self._functions.get(fact.head)
        if function is None:
            yield "it is false"
            return
        match = self.find(fact)
        if isinstance(match, Missing) and match.term is not fact:
            yield f"there is no {written(match.term)}"
        rows = [self._row(fact.head, row) for row in function.rows[:_READ]]
        yield from _listed("there is ", sorted(rows, key=_by_length) or [f"no {fact.head} at all"])

    def _rows_like(self, fact: Form) -> Iterator[str]:
        """Lines with the facts that match `fact`."""
        function = self._functions.get(fact.head)
        if function is None:
            yield "it is true"
            return
        parts = [self.find(item) for item in fact.items[1:]]
        wanted = [part.value if isinstance(part, Known) else None for part in parts]
        rows = [self._row(fact.head, row) for row in function.rows if _fits(row, wanted)]
        yield from _listed("there is ", sorted(rows, key=_by_length))

    def _row(self, name: str, row: FrozenRow) -> str:
        function = self._functions[name]
        shown = self._term(name, row, 0)
        result = Known(function.output_sort, row.output)
        if name not in _FACTS or function.output_sort.startswith("@") or not self._plain(result):
            return shown
        return f"{shown}, which is {self.text(result)}"

    def _plain(self, known: Known) -> bool:
        return known.sort in ("i64", "f64", "bool", "String", *_ELEMENTS)


_FACTS = frozenset(d.name for d in vocabulary_table() if d.kind != "constructor")


def _arguments(tree: Tree) -> Iterator[str]:
    """The atoms in `tree` that are not heads."""
    if isinstance(tree, Atom):
        yield tree.text
    else:
        for item in tree.items[1:]:
            yield from _arguments(item)


def _fits(row: FrozenRow, wanted: Sequence[Value | None]) -> bool:
    pairs = zip(row.inputs, wanted, strict=False)
    return not row.subsumed and all(want is None or have == want for have, want in pairs)


def _applied(head: str, parts: Sequence[str]) -> str:
    return f"({' '.join((head, *parts))})"


def _by_length(text: str) -> tuple[int, str]:
    return len(text), text


def _listed(head: str, entries: Sequence[str]) -> Iterator[str]:
    """Lines of `entries`, with `head` before the first and the same indent before the others."""
    shown = [*entries[:_MOST], *((f"… {len(entries) - _MOST} more",) * (len(entries) > _MOST))]
    for k, entry in enumerate(shown):
        yield f"{head if k == 0 else ' ' * len(head)}{entry}"
