"""The rows of a saturated e-graph, for those who ask what a rule found there, and what not."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from math import inf
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

from egglog.bindings import EGraph, Value

from relax_egraph.egraph.bulk import load_view
from relax_egraph.egraph.commands import prepared
from relax_egraph.egraph.course import Course
from relax_egraph.egraph.report import Report
from relax_egraph.egraph.rulebook import RuleBook
from relax_egraph.egraph.run import Run
from relax_egraph.egraph.saturation import untold
from relax_egraph.egraph.schedule import Budget, Schedule
from relax_egraph.egraph.tables import Key, Tables
from relax_egraph.egraph.view import View
from relax_egraph.ir.collection import no_collection

Row: TypeAlias = tuple[Any, ...]
"""The arguments of a function, then its result; of a relation the arguments alone."""

Found = TypeVar("Found")


class Database(Tables):
    """Rows as Python values: a `Key` for a class, a number, a text, a tuple for a vector.

    A dimension is a `Dim`.  What has no value in Python is a `Key` of its sort.
    """

    def __init__(self, egraph: EGraph) -> None:
        super().__init__(egraph)
        self._tables: dict[str, tuple[Row, ...]] = {}
        self._indices: dict[tuple[str, tuple[int, ...]], Mapping[Row, list[Row]]] = {}

    def table(self, name: str) -> tuple[Row, ...]:
        """The rows of a function that are not subsumed, in order; none of one that is not there."""
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
        """The rows of function `name` that have the values `known` at their positions."""
        at = tuple(sorted(known))
        if (name, at) not in self._indices:
            index: dict[Row, list[Row]] = defaultdict(list)
            for row in self.table(name):
                index[tuple(row[k] for k in at)].append(row)
            self._indices[name, at] = index
        return self._indices[name, at].get(tuple(known[k] for k in at), [])

    @property
    def names(self) -> tuple[str, ...]:
        """The functions that have rows."""
        return tuple(name for name, function in self._functions.items() if function.rows)

    def _python(self, sort: str, value: Value) -> Any:
        if sort == "Dim":
            return self._dims.get(value, Key(sort, value))
        try:
            return self.decode(sort, value)
        except (KeyError, ValueError):
            return Key(sort, value)


def saturated_and_read(
    view: View,
    book: RuleBook,
    budget: Budget,
    schedule: Schedule,
    course: Course,
    read: Callable[[Database, Report], Found],
) -> Found:
    """What `read` finds in the e-graph that `schedule` makes of `view`, which it must not keep.

    The run is that of `saturate_here`, in this process: with a `course` that bans the rules that
    were banned before, it makes the same e-graph.
    """
    begin, deadline = perf_counter(), inf
    while True:
        with no_collection(), prepared(book.texts) as egraph:
            deadline = min(deadline, perf_counter() + budget.seconds)
            load_view(egraph, view)
            run = Run(egraph, view, book, budget, course, deadline, untold)
            done = run.schedule(schedule)
            if not isinstance(done, Course):
                return read(Database(egraph), Report(done, perf_counter() - begin))
        course = done
