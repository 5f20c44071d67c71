"""The rows of a saturated e-graph as Python values, for queries about the matches of a rule."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from relax_egraph.egraph.bindings import EGraph, Value
from relax_egraph.egraph.readback.tables import Key, Tables
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.saturation.course import Course
from relax_egraph.egraph.saturation.in_process import Answer, saturated_and_read, untold
from relax_egraph.egraph.saturation.report import Report
from relax_egraph.egraph.saturation.schedule import Budget, Schedule
from relax_egraph.egraph.view import View

Row: TypeAlias = tuple[Any, ...]
"""The arguments of a function, then its result; for a relation, the arguments alone."""


class Database(Tables):
    """Rows as Python values: a `Key` for a class, a number, a text, a tuple for a vector.

    A dimension is a `Dim`.  A value without a form in Python is a `Key` of its sort.
    """

    def __init__(self, egraph: EGraph) -> None:
        super().__init__(egraph)
        self._tables: dict[str, tuple[Row, ...]] = {}
        self._indices: dict[tuple[str, tuple[int, ...]], Mapping[Row, list[Row]]] = {}

    def table(self, name: str) -> tuple[Row, ...]:
        """The rows of a function that are not subsumed, in order; none if it is not declared."""
        if name not in self._tables:
            function = self._functions.get(name)
            if function is None:
                return ()
            sorts = list(function.input_sorts)
            if not function.output_sort.startswith("@"):  # the sort of a relation alone
                sorts.append(function.output_sort)
            self._tables[name] = tuple(
                tuple(map(self._python, sorts, (*row.inputs, row.output)))
                for row in self.rows(name)
            )
        return self._tables[name]

    def where(self, name: str, known: Mapping[int, Any]) -> list[Row]:
        """The rows of function `name` with the values `known`, by position."""
        at = tuple(sorted(known))
        if (name, at) not in self._indices:
            index: dict[Row, list[Row]] = defaultdict(list)
            for row in self.table(name):
                index[tuple(row[k] for k in at)].append(row)
            self._indices[name, at] = index
        return self._indices[name, at].get(tuple(known[k] for k in at), [])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of functions that have rows."""
        return tuple(name for name, function in self._functions.items() if function.rows)

    def _python(self, sort: str, value: Value) -> Any:
        if sort == "Dim":
            return self._dims.get(value, Key(sort, value))
        try:
            return self.decode(sort, value)
        except (KeyError, ValueError):
            return Key(sort, value)


def saturated_database(
    view: View,
    book: RuleBook,
    budget: Budget,
    schedule: Schedule,
    course: Course,
    read: Callable[[Database, Report], Answer],
) -> Answer:
    """The result of `read` on the saturated e-graph of `view`, which `read` must not keep.

    With a `course` that repeats the bans of an earlier run, the e-graph is the same.
    """

    def database(egraph: EGraph, report: Report) -> Answer:
        return read(Database(egraph), report)

    return saturated_and_read(view, book, budget, schedule, course, untold, database)
