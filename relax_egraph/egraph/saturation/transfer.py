"""Messages between this process and its worker.

A view is sent as rows, which pickle six times faster than its classes.  Variables and constants
are compared by identity and may be large weights; a message has a number in place of each.
"""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from io import BytesIO
from operator import attrgetter
from typing import Any, BinaryIO

from relax_egraph.egraph.node import Node
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.saturation.course import Course
from relax_egraph.egraph.saturation.report import Report
from relax_egraph.egraph.saturation.schedule import Budget, Schedule
from relax_egraph.egraph.view import ClassId, EClass, View
from relax_egraph.ir.expr import Binding, Constant, Expr, Var
from relax_egraph.ir.struct_info import TensorStructInfo
from relax_egraph.ir.symbol_ranges import Assumptions

_BY_IDENTITY = (Var, Constant)


@dataclass(slots=True)
class Names:
    """Values that are not sent, by number; values of the other process have placeholders."""

    values: list[Expr] = field(default_factory=list[Expr])
    _numbers: dict[int, int] = field(default_factory=dict[int, int])

    def number(self, value: Expr) -> int:
        """The number of `value`, which is added if it is new."""
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self.values)
            self.values.append(value)
        return self._numbers[id(value)]

    def value(self, number: int) -> Expr:
        """The value with this number; a placeholder variable if it is from the other process."""
        while number >= len(self.values):
            self.number(Var(f"#{len(self.values)}"))
        return self.values[number]

    def dumps(self, message: object) -> bytes:
        """`message`, pickled."""
        file = BytesIO()
        _Pickler(file, self).dump(message)
        return file.getvalue()

    def loads(self, data: bytes) -> Any:
        """The message in `data`."""
        return _Unpickler(BytesIO(data), self).load()


class _Pickler(pickle.Pickler):
    def __init__(self, file: BinaryIO, names: Names) -> None:
        super().__init__(file, protocol=5)
        self._names = names

    def persistent_id(self, obj: Any) -> int | None:
        return self._names.number(obj) if isinstance(obj, _BY_IDENTITY) else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: BinaryIO, names: Names) -> None:
        super().__init__(file)
        self._names = names

    def persistent_load(self, pid: Any) -> Expr:
        return self._names.value(pid)


_fields_of = attrgetter(*(f.name for f in fields(Node)))


@dataclass(frozen=True, slots=True)
class Rows:
    """A view without its leaves and opaque bindings; equal struct infos are stored once."""

    classes: list[tuple[Any, ...]]
    infos: list[TensorStructInfo]
    roots: tuple[ClassId, ...]

    @staticmethod
    def of(view: View) -> "Rows":
        """The rows of `view`."""
        infos: dict[TensorStructInfo, int] = {}
        classes = [
            (
                number,
                c.sort,
                [_fields_of(node) for node in c.nodes],
                infos.setdefault(c.struct_info, len(infos)),
                c.is_const,
                c.scalar,
                c.narrow,
                c.magnitude,
                c.elements_of,
                c.has_reciprocal,
            )
            for number, c in view.classes.items()
        ]
        return Rows(classes, list(infos), view.roots)

    def view(self, leaves: tuple[Expr, ...] = (), opaque: tuple[Binding, ...] = ()) -> View:
        """The view, with the leaves and opaque bindings that keys of nodes refer to."""
        classes = {
            number: EClass(sort, tuple(Node(*node) for node in nodes), self.infos[info], *known)
            for number, sort, nodes, info, *known in self.classes
        }
        return View(classes, self.roots, leaves, opaque)


@dataclass(frozen=True, slots=True)
class Request:
    """The inputs of a saturation in the worker."""

    book: RuleBook
    assumptions: Assumptions | None
    rows: Rows
    budget: Budget
    schedule: Schedule
    course: Course


@dataclass(frozen=True, slots=True)
class Answer:
    """A `Saturated` in the form that is sent; `limited` tells if the worker's memory is bounded."""

    rows: Rows
    report: Report
    became: Mapping[ClassId, ClassId]
    limited: bool
