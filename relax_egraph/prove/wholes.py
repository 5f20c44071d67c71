"""Which symbolic numbers are whole, and integers of which dtypes: those that the left side has."""

from collections.abc import Iterable

from relax_egraph.egraph.functions.builtin import dtype_holds
from relax_egraph.prove.algebra import is_value_of, limits_of
from relax_egraph.prove.reals import Comparison, as_float
from relax_egraph.prove.sums import Applied, Sum, single
from relax_egraph.prove.sums import number as as_number


class Wholes:
    """The symbolic numbers that are assumed to be whole."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.dtypes: dict[str, set[str]] = {}
        self.ranges: list[Comparison] = []

    def note(self, number: Sum, dtype: str = "") -> None:
        """Assume that a number is whole, or an integer of a dtype."""
        self.known.add(number.key)
        if dtype and dtype not in self.dtypes.setdefault(number.key, set()):
            self.dtypes[number.key].add(dtype)
            least, most = map(as_number, limits_of(dtype))
            self.ranges += [Comparison("<=", least, number), Comparison("<=", number, most)]

    def is_known(self, number: Sum) -> bool:
        """Whether a symbolic number is assumed to be whole."""
        return number.key in self.known

    def is_whole(self, number: Sum) -> bool:
        """Whether a number is known to be whole, or infinite."""
        parts = [*_parts(number)]
        values = map(as_float, parts)
        return all(
            self.is_known(x) if value is None else value in _INFINITE or value % 1 == 0
            for x, value in zip(parts, values, strict=True)
        )

    def is_sum_of_wholes(self, number: Sum) -> bool:
        """Whether a number is a sum of products of whole numbers."""
        return all(
            t.coefficient.denominator == 1 and all(self.is_whole(single(f)) for f in t.factors)
            for t in number.terms
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
