"""Values of a rule as a graph of operators, with symbolic shapes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import Shape, StructInfo, TensorStructInfo
from relax_egraph.prove.sums import Sum


@dataclass(frozen=True, eq=False)
class Leaf:
    """An operand of the rule."""

    name: str
    info: TensorStructInfo

    @property
    def key(self) -> str:
        """Equal values have one text."""
        return self.name


@dataclass(frozen=True, eq=False)
class Uniform:
    """A tensor whose elements all have one value."""

    value: Sum
    info: TensorStructInfo

    @property
    def key(self) -> str:
        """Equal values have one text."""
        return f"uniform({self.value.key},{self.info})"


@dataclass(frozen=True, eq=False)
class Result:
    """The result of an operator on `operands`: values, tuples of values, shapes, numbers."""

    op: Op
    operands: tuple[Any, ...]
    attrs: Mapping[str, Any]
    info: StructInfo

    @cached_property
    def key(self) -> str:
        """Equal values have one text."""
        operands = ",".join(map(key_of, self.operands))
        attrs = ",".join(f"{k}={key_of(v)}" for k, v in self.attrs.items())
        return f"{self.op.name}({operands};{attrs})"


@dataclass(frozen=True, eq=False)
class Mapped:
    """An unknown function of each element of `operands`, or of all along `axes`."""

    function: str
    operands: "tuple[Value, ...]"
    info: TensorStructInfo
    axes: tuple[int, ...] | None = None
    keepdims: bool = False

    @cached_property
    def key(self) -> str:
        """Equal values have one text."""
        operands = ",".join(v.key for v in self.operands)
        return f"{self.function}({operands};{self.axes},{self.keepdims},{dtype_of(self)})"


@dataclass(frozen=True, eq=False)
class Part:
    """One field of a tuple."""

    whole: Result
    number: int
    info: StructInfo

    @property
    def key(self) -> str:
        """Equal values have one text."""
        return f"{self.whole.key}.{self.number}"


Value: TypeAlias = Leaf | Uniform | Result | Mapped | Part


def key_of(value: Any) -> str:
    """The text of an operand or an attribute; equal ones have one text."""
    if isinstance(value, tuple):
        return f"({','.join(map(key_of, value))})"
    key = getattr(value, "key", None)
    return key if isinstance(key, str) else repr(value)


def parts(values: Iterable[Any]) -> Iterator[Value]:
    """All values that some are made of, and these, each once."""
    seen: set[int] = set()
    open_ = [*values]
    while open_:
        value = open_.pop()
        if isinstance(value, tuple):
            open_ += value
        elif isinstance(value, Value) and id(value) not in seen:
            seen.add(id(value))
            yield value
            open_ += [value.whole] if isinstance(value, Part) else getattr(value, "operands", ())


def shape_of(value: Value) -> Shape:
    """The shape of a tensor."""
    info = value.info
    assert isinstance(info, TensorStructInfo)
    assert info.dims is not None
    return info.dims


def dtype_of(value: Value) -> str:
    """The dtype of a tensor."""
    info = value.info
    assert isinstance(info, TensorStructInfo)
    return str(info.dtype)
