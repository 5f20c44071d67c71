"""The slots of one node: its operands and attributes, known or still to be drawn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.operators import by_operators, named
from relax_egraph.ir.struct_info import Shape
from relax_egraph.verify.instances.primitives import Fails
from relax_egraph.verify.instances.problem import Application, Problem
from relax_egraph.verify.instances.query import Arg, Literal

MISSING: Any = object()
"""The mark of an unknown value; ``None`` is a value."""


@dataclass(frozen=True, slots=True)
class Palette:
    """The random source of an instance: few extents, so that they coincide, and a dtype."""

    random: Random
    extents: tuple[Dim, ...]
    dtype: str

    def extent(self) -> Dim:
        """One of the extents."""
        return self.random.choice(self.extents)

    def static(self, least: int = 0) -> int:
        """An extent that is a number of at least `least`."""
        fit = [e for e in self.extents if isinstance(e, int) and e >= least]
        return self.random.choice(fit) if fit else max(least, 2)

    def chance(self, p: float) -> bool:
        """True with probability `p`."""
        return self.random.random() < p

    def shape(self, rank: int | None = None) -> Shape:
        """A shape of `rank`, by default of 0 to 4."""
        if rank is None:
            rank = self.random.choices(range(5), (1, 3, 5, 4, 3))[0]
        return tuple(self.extent() for _ in range(rank))


def palette_of(random: Random, small: bool, dtypes: Sequence[str]) -> Palette:
    """A palette with extents 0, 1, symbols and multiples, or with few small extents if `small`.

    The dtype is one of `dtypes`, if there are any.
    """
    if small:
        few = random.choice([(1, 2), (2, 3), (1, 2, 3), (0, 1, 2), (2,), (2, 4)])
        dtype = random.choice(dtypes or ("float32", "float32", "float32", "int32"))
        return Palette(random, few, dtype)
    numbers = random.sample((2, 3, 4, 5, 6, 7), random.choice((1, 2, 2, 3)))
    extents: list[Dim] = [*numbers, *numbers]
    if random.random() < 0.5:
        n, m = dims.symbol("n"), dims.symbol("m")
        extents += random.choice(
            [(n,), (n, m), (n, n, m), (n, dims.mul(2, n)), (n, dims.add(n, 1))]
        )
    if random.random() < 0.4:
        extents.append(numbers[0] * 2)
    extents += [1] * random.choice((0, 1, 1, 2)) + [0] * (random.random() < 0.25)
    return Palette(random, tuple(extents), random.choice(dtypes or _DTYPES))


_DTYPES = (
    *("float32",) * 8,
    *("float64",) * 2,
    *("float16", "bfloat16"),
    *("int32", "int64", "int8", "uint8", "uint32", "bool"),
)


@by_operators(1 << 12)
def _places(op: str) -> Mapping[str, int]:
    """The index of each operand and attribute of an operator, by name."""
    return {p.name: k for k, p in enumerate((*named(op).operands, *named(op).attrs))}


@dataclass(slots=True)
class Slots:
    """The slots of `node`; `drawn` are the values of slots that were empty.

    Methods raise `Fails` if a slot would get two values.
    """

    node: Application
    problem: Problem
    values: Mapping[str, Any]
    palette: Palette
    drawn: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def random(self) -> Random:
        """The random generator."""
        return self.palette.random

    def get(self, arg: Arg) -> Any:
        """The value of `arg`, or `MISSING`."""
        if isinstance(arg, Literal):
            return arg.value
        return self.values.get(arg, self.drawn.get(arg, MISSING))

    def put(self, arg: Arg, value: Any) -> None:
        """Fill `arg` with `value`, unless it has that value."""
        known = self.get(arg)
        if known is MISSING and isinstance(arg, str):
            self.drawn[arg] = value
        elif known != value:
            raise Fails

    def arg(self, name: str) -> Arg:
        """The operand or attribute `name`."""
        assert self.node.op is not None
        return self.node.args[_places(self.node.op.name)[name]]

    def attr(self, name: str) -> Any:
        """The attribute or shape operand `name`, or ``None`` if it is not known."""
        value = self.get(self.arg(name))
        return None if value is MISSING else value

    def choose(self, name: str, *choices: Attr | Shape) -> Any:
        """The attribute `name`, drawn from `choices` if it is not known."""
        value = self.get(self.arg(name))
        if value is MISSING:
            value = self.random.choice(choices)
            self.put(self.arg(name), value)
        return value

    def shape(self, operand: str) -> Shape | None:
        """The shape of a tensor operand, or ``None`` if it is not known."""
        return self._shape(str(self.arg(operand)))

    def give(self, operand: str, shape: Shape) -> Shape:
        """The shape of `operand`, which is `shape` if it was not known."""
        known = self.shape(operand)
        if known is None:
            known = self.hinted(self.problem.shapes[str(self.arg(operand))], shape, True)
            self.put(self.problem.shapes[str(self.arg(operand))], known)
        return known

    @property
    def result(self) -> Shape | None:
        """The shape of the result, or ``None`` if it is not known."""
        return self._shape(self.node.result)

    def left_out(self, operand: str) -> bool:
        """Whether an optional operand is absent."""
        producer = self.problem.producers.get(str(self.arg(operand)))
        return producer is not None and producer.head == "R.none"

    def tensors(self, operand: str) -> Sequence[str]:
        """The variables of a ``Tensors`` operand."""
        return self.problem.elements[str(self.arg(operand))]

    def fresh(self, operand: str, rank: int | None = None) -> Shape:
        """The shape of `operand`, drawn if it is not known."""
        known = self.shape(operand)
        return self.give(operand, self.palette.shape(rank)) if known is None else known

    def _shape(self, tensor: str) -> Shape | None:
        if tensor not in self.problem.shapes:
            return None
        value = self.get(self.problem.shapes[tensor])
        return None if value is MISSING else value

    def length(self, arg: Arg) -> int | None:
        """The length of the vector `arg` that a premise requires, or ``None``."""
        for premise in self.problem.premises:
            if (
                premise.head == "vec-length"
                and premise.args[0] == arg
                and premise.result is not None
            ):
                count = self.get(premise.result)
                if count is not MISSING:
                    return int(count)
            if premise.head == "vec-of" and premise.result == arg:
                return len(premise.args)
        return None

    def hinted(self, arg: Arg, shape: Shape, grow: bool = False) -> Shape:
        """`shape`, or another vector, with the elements that premises on `arg` require.

        If it may `grow`, its length is adapted to the premises, too.
        """
        length = self.length(arg) if grow else None
        if length is not None and length != len(shape):
            shape = (*self.palette.shape(length), *shape)[-length:] if length else ()
        items = list(shape)
        for premise in self.problem.premises:
            if premise.head == "vec-get" and premise.args[0] == arg and premise.result is not None:
                at, extent = self.get(premise.args[1]), self.get(premise.result)
                if MISSING not in (at, extent) and 0 <= at < len(items):
                    items[at] = extent
            if premise.head == "vec-of" and premise.result == arg:
                for at, part in enumerate(premise.args):
                    if (extent := self.get(part)) is not MISSING and at < len(items):
                        items[at] = extent
        return tuple(items)
