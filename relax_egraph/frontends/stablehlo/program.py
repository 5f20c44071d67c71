"""The state of a program during its conversion, and the operations that could not be converted."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jaxlib.mlir import ir

from relax_egraph.errors import ModelError
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.names import unused

MOST_OPERATIONS = 200_000
"""The most operations of a program after its functions are inlined."""


class Learned(Exception):
    """The program tells that the size `symbol` is `dim`: parameters are to be declared so."""

    def __init__(self, symbol: str, dim: Dim) -> None:
        super().__init__(f"{symbol} is {dims.text(dim)}")
        self.symbol, self.dim = symbol, dim


@dataclass(slots=True)
class Program:
    """A program that is converted.

    `functions` are its functions by name, `positive` the symbols of sizes that it has asserted to
    be 1 or more.  If it is `learning`, sizes that it names, or asserts to be equal, raise
    `Learned`.
    """

    functions: Mapping[str, ir.Operation]
    learning: bool
    positive: set[str] = field(default_factory=set[str])
    problems: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    operations: int = 0
    _names: set[str] = field(default_factory=lambda: {"main"})
    _symbols: set[str] = field(default_factory=set[str])

    def function(self, name: str) -> ir.Operation:
        """The function `name`."""
        if name not in self.functions:
            raise ModelError(f"the module has no function {name}")
        return self.functions[name]

    def function_name(self, name: str) -> str:
        """A unique name for a function."""
        return unused(name, self._names)

    def fresh(self, name: str) -> Dim:
        """A new symbol for an extent that only the run decides."""
        return dims.symbol(unused(name, self._symbols))

    def at_least(self, a: Dim, b: Dim) -> bool:
        """Whether `a` is proven to be `b` or more, behind what the program has asserted."""
        shifted: dict[str, Dim] = {s: dims.add(dims.symbol(s), 1) for s in self.positive}
        return dims.prove_ge(dims.substitute(a, shifted), dims.substitute(b, shifted))

    def count(self) -> None:
        """Count one more operation; raises `ModelError` if there are too many."""
        self.operations += 1
        if self.operations > MOST_OPERATIONS:
            raise ModelError(f"the program has more than {MOST_OPERATIONS} operations")

    def refuse(self, operation: ir.Operation, reason: str) -> None:
        """Note that `operation` cannot be converted."""
        self.problems.setdefault(f"{operation.name}: {reason}", []).append(place(operation))

    def check(self) -> None:
        """Raise `ModelError` with all problems, if there are any."""
        if not self.problems:
            return
        lines = [f"  {reason}{_often(at)}: {at[0]}" for reason, at in self.problems.items()]
        count = sum(map(len, self.problems.values()))
        some = "an operation" if count == 1 else f"{count} operations"
        raise ModelError("\n".join([f"the program has {some} that cannot be converted:", *lines]))


_POSITION = re.compile(r'"([^"]+)":(\d+):(\d+)')
_NAME = re.compile(r'"([^"]+)"')


def place(operation: ir.Operation) -> str:
    """Where the program has `operation`: ``file:line``, or the name that it has there."""
    text = str(operation.location)
    if at := _POSITION.search(text):
        file, line, column = at.groups()
        return f"line {line}, column {column}" if file == "-" else f"{file}:{line}"
    name = _NAME.search(text)
    return name[1] if name else "at an unknown place"


def _often(places: Sequence[str]) -> str:
    return "" if len(places) == 1 else f" ({len(places)} times)"
