"""What is known of a register while bytecode is traced: the kind of its value, and its numbers."""

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from relax_egraph.vm.native.numbers import Number
from relax_egraph.vm.native.regions import Loop, Region


@dataclass(frozen=True, slots=True)
class Argument:
    """Whatever is given as argument `index`; `ArgumentUse` says what the code takes it for."""

    index: int


@dataclass(frozen=True, slots=True)
class Fixed:
    """Constant `index` of the executable, as an object; ``None`` is Python's."""

    index: int | None


@dataclass(slots=True, eq=False)
class Storage:
    """Bytes that the function allocates, in `region`: its own each time that it is traced.

    Storages of which each run has only one may be made one: the others are then `same_as` it.
    """

    size: Number
    region: Region
    same_as: "Storage | None" = None

    def itself(self) -> "Storage":
        """The storage that this one is."""
        storage = self
        while storage.same_as is not None:
            storage = storage.same_as
        return storage


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """Where the elements of a tensor are that each turn of `loop` gives to the next.

    `given` are the tensors that are passed so, from before the loop and from its turns, `origins`
    where they were before they were copied.
    """

    loop: Loop
    given: "list[Tensor]" = field(default_factory=list["Tensor"])
    origins: "list[Owner]" = field(default_factory=list["Owner"])


Owner: TypeAlias = Argument | Fixed | Storage | Carried
"""Where the elements of a tensor are."""


def itself(owner: Owner) -> Owner:
    """`owner`, of storages that were made one that one."""
    return owner.itself() if isinstance(owner, Storage) else owner


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A tensor in `owner`, `offset` bytes from its beginning.

    `shape` is ``None`` where not even the rank is known.  A `view` is another object than the
    argument or constant that has its elements.
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
    """What is in a boolean scalar tensor, as a Python bool."""

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
    """A list of dimensions: what is stored by now.  `given` is the argument that it came as.

    What is in the slots `lost` is not known: they hold this or that, after a branch.
    """

    slots: dict[int, Number]
    size: int
    given: Argument | None = None
    written: set[int] = field(default_factory=set[int])
    lost: set[int] = field(default_factory=set[int])

    def copy(self) -> "Heap":
        """A heap that holds the same."""
        return replace(self, slots=dict(self.slots), written=set(self.written), lost=set(self.lost))


@dataclass(frozen=True, slots=True, eq=False)
class Fields:
    """A tuple of other values."""

    values: "tuple[Value, ...]"


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """The function `name` of the executable, whose last arguments `captured` are."""

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
