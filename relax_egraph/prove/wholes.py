"""Which symbolic numbers are whole, and integers of which dtypes: those that the left side has."""

from collections.abc import Iterable

from relax_egraph.egraph.functions.builtin import dtype_holds
from relax_egraph.prove.algebra import is_value_of
from relax_egraph.prove.reals import as_float
from relax_egraph.prove.sums import Applied, Sum


class Wholes:
    """The symbolic numbers that are assumed to be whole."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.dtypes: dict[str, set[str]] = {}

    def note(self, number: Sum, dtype: str = "") -> None:
        """Assume that a number is whole, or an integer of a dtype."""
        self.known.add(number.key)
        if dtype:
            self.dtypes.setdefault(number.key, set()).add(dtype)

    def is_whole(self, number: Sum) -> bool:
        """Whether a number is known to be whole, or infinite."""
        parts = [*_parts(number)]
        values = map(as_float, parts)
        return all(
            x.key in self.known if value is None else value in _INFINITE or value % 1 == 0
            for x, value in zip(parts, values, strict=True)
        )

    def has(self, dtype: str, number: Sum) -> bool:
        """Whether a number is known to be an integer of a dtype."""
        return all(
            is_value_of(x, dtype)
            if as_float(x) is not None
            else any(dtype_holds(dtype, d) for d in self.dtypes.get(x.key, ()))
            for x in _parts(number)
        )


_INFINITE = (float("inf"), float("-inf"))


def _parts(number: Sum) -> Iterable[Sum]:
    """The numbers of which one is `number`, which may be the least or the greatest of them."""
    f = number.factor
    if isinstance(f, Applied) and f.function in ("max", "min"):
        return (part for a in f.args for part in _parts(a))
    return (number,)
