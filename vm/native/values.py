"""Abstract values of registers during tracing: kinds and symbolic numbers."""

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from relax_egraph.vm.native.numbers import Number
from relax_egraph.vm.native.regions import Loop, Region


@dataclass(frozen=True, slots=True)
class Argument:
    """Argument `index`; `ArgumentUse` has its kind."""

    index: int


@dataclass(frozen=True, slots=True)
class Fixed:
    """Constant `index` of the executable, as an object; without an index, Python's ``None``."""

    index: int | None


@dataclass(slots=True, eq=False)
class Storage:
    """An allocation of the function in `region`, distinct for each tracing of the function.

    Storages that never exist in the same run may be merged: `same_as` is the representative.
    """

    size: Number
    region: Region
    same_as: "Storage | None" = None

    def itself(self) -> "Storage":
        """The representative of merged storages."""
        storage = self
        while storage.same_as is not None:
            storage = storage.same_as
        return storage


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """The memory of a loop-carried tensor of `loop`.

    `incoming` are its values, from before the loop and from its turns (the operands of a phi),
    `origins` their owners before copies.
    """

    loop: Loop
    incoming: "list[Tensor]" = field(default_factory=list["Tensor"])
    origins: "list[Owner]" = field(default_factory=list["Owner"])


Owner: TypeAlias = Argument | Fixed | Storage | Carried
"""The owner of the elements of a tensor."""


def itself(owner: Owner) -> Owner:
    """`owner`, or the representative of merged storages."""
    return owner.itself() if isinstance(owner, Storage) else owner


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A tensor in `owner`, at `offset` bytes.

    `shape` is ``None`` where the rank is unknown.  A `view` is a different object from the argument
    or constant that owns its elements.
    """

    owner: Owner
    dtype: str
    shape: tuple[Number, ...] | None
    offset: Number = 0
    view: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether ``a ≤ b``, as a boolean scalar tensor."""

    a: Number
    b: Number


@dataclass(frozen=True, slots=True)
class Truth:
    """The element of a boolean scalar tensor, as a Python bool."""

    of: "Tensor | Comparison"


@dataclass(frozen=True, slots=True)
class Prim:
    """An integer."""

    number: Number


@dataclass(frozen=True, slots=True)
class Shape:
    """A tuple of integers."""

    extents: tuple[Number, ...]


@dataclass(slots=True, eq=False)
class Heap:
    """A shape heap: the slots stored so far.  `argument` is set if the heap is an argument.

    The slots `lost` are unknown: they have different values after a branch.
    """

    slots: dict[int, Number]
    size: int
    argument: Argument | None = None
    written: set[int] = field(default_factory=set[int])
    lost: set[int] = field(default_factory=set[int])

    def copy(self) -> "Heap":
        """A copy of the heap."""
        return replace(self, slots=dict(self.slots), written=set(self.written), lost=set(self.lost))


@dataclass(frozen=True, slots=True, eq=False)
class Fields:
    """A tuple of other values."""

    values: "tuple[Value, ...]"


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """The function `name` of the executable, with its last arguments bound to `captured`."""

    name: str
    captured: "tuple[Value, ...]" = ()


Value: TypeAlias = (
    Argument
    | Fixed
    | Storage
    | Tensor
    | Comparison
    | Truth
    | Prim
    | Shape
    | Heap
    | Fields
    | Function
)

NOTHING = Fixed(None)
