"""Near misses of a pattern's node: swapped operands, another attribute, a broadcast between."""

from collections.abc import Iterator, Mapping
from typing import Any

from relax_egraph.egraph.readback.tables import Key
from relax_egraph.egraph.recording.database import Database, Row
from relax_egraph.reasons.why_not.partial import Failure, How
from relax_egraph.reasons.why_not.plan import Conjunct, Values, known_places

THROUGH = ("R.broadcast_to", "R.astype")
"""Operators that may stand between a pattern's node and its class."""

_MOST = 4
"""The most near misses of one class."""


def nearby(
    database: Database, c: Conjunct, values: Values, exact: bool
) -> Iterator[tuple[Failure, Values]]:
    """The near misses of `c`, each with the values of variables that it binds.

    If `c` has `exact` matches, too, only swapped operands count.
    """
    last = len(c.places) - 1
    known = known_places(c, values)
    if last not in known or known[last] in _constants(database):
        return
    rows = [r for r in database.where(c.head, {last: known[last]}) if r[last] not in r[:last]]
    existing = set(rows)
    for row in rows[:_MOST]:
        other = _swapped(row)
        if other not in (None, row) and other not in existing:
            assert other is not None
            if all(other[k] == value for k, value in known.items()):
                yield Failure(c, "swapped", known, row), _bound(c, other, values, frozenset())
    if exact:
        return
    for row in rows[:_MOST]:
        wrong = frozenset(k for k, value in known.items() if row[k] != value)
        how: How = "operand" if any(isinstance(row[k], Key) for k in wrong) else "attribute"
        yield Failure(c, how, known, row), _bound(c, row, values, wrong)
    if rows:
        return
    for name in THROUGH:
        for outer in database.where(name, _result(database, name, known[last])):
            for row in database.where(c.head, {last: outer[0]})[:_MOST]:
                wrong = frozenset(k for k, value in known.items() if row[k] != value)
                if wrong == frozenset((last,)):
                    failure = Failure(c, "behind", known, row, name)
                    yield failure, _bound(c, row, values, wrong)
    if c.head in THROUGH and 0 not in known:
        row = (known[last], *(None for _ in c.places[1:]))
        left_out = frozenset(range(1, len(c.places)))
        yield Failure(c, "bare", known, row), _bound(c, row, values, left_out)


def _constants(database: Database) -> frozenset[Any]:
    """The class of the absent operand, ``R.none``: nothing is near it."""
    return frozenset(row[0] for row in database.table("R.none"))


def _swapped(row: Row) -> Row | None:
    if len(row) > 2 and all(isinstance(v, Key) and v.sort == "Tensor" for v in row[:2]):
        return (row[1], row[0], *row[2:])
    return None


def _result(database: Database, name: str, key: Any) -> Mapping[int, Any]:
    rows = database.table(name)
    return {len(rows[0]) - 1: key} if rows else {0: key}


def _bound(c: Conjunct, row: Row, values: Values, wrong: frozenset[int]) -> Values:
    """`values` extended by the variables that `row` binds, except at the `wrong` places."""
    extended = dict(values)
    for k, (place, value) in enumerate(zip(c.places, row, strict=True)):
        if k not in wrong and isinstance(place, str):
            extended.setdefault(place, value)
    return extended
