"""The writer of random programs: the tensors so far, random choices among them, and emission.

Each value is computed for sample sizes when it is emitted, so that plain programs keep moderate
numbers, and all programs moderate sizes.
"""

import math
import random
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float, is_signed
from relax_egraph.ir.expr import (
    Attr,
    Call,
    Constant,
    Expr,
    ExternFunc,
    PrimValue,
    ShapeExpr,
    Tuple,
    TupleGetItem,
)
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import (
    Shape,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relax_egraph.ir.walk import children
from relax_egraph.tir.block_builder import BlockBuilder
from tests.support.ops.case import Case

Array: TypeAlias = npt.NDArray[Any]
T = TypeVar("T")

Extents: TypeAlias = dict[int, Dim]
"""Values for the extents of an instance; absent ones stand for themselves."""

SAMPLE = {"n": 3, "m": 2}
"""The sizes for which a program is computed while it is written."""

LARGE = {"n": 17, "m": 17}
"""The sizes for which no value has more than `MOST_ELEMENTS`."""

MOST_ELEMENTS = 20_000
MOST = 1e3
"""The bound on finite numbers of a plain program, for `SAMPLE`."""

DTYPES = ("float32",) * 9 + ("float64",) * 3 + ("int32", "int64", "int64", "bool", "int8", "uint8")
NUMBERS = (0.0, 1.0, 2.0, 0.5, -1.0, 3.0, -0.25)

n, m = dims.symbol("n"), dims.symbol("m")
STATIC: tuple[Dim, ...] = (1, 2, 3, 4, 5, 8, 16, 17, 33, 64, 129)
SYMBOLIC: tuple[Dim, ...] = (
    *(n, n, n, m, m),
    *(dims.add(n, 1), dims.mul(n, 2), dims.mul(n, m), dims.add(n, m)),
)
SMALL: tuple[Dim, ...] = (1, 2, 3, 4, 5, 7)
"""Extents of the instances of operators, which match if a program has them."""


def doubled(x: Array) -> Array:
    """A packed function of the programs: twice each element."""
    with np.errstate(over="ignore"):
        return x + x


def halves(x: Array) -> tuple[Array, Array]:
    """A packed function of the programs, with two results."""
    return x[: len(x) // 2].copy(), x[len(x) // 2 :].copy()


PACKED: Mapping[str, Callable[..., Any]] = {"test.doubled": doubled, "test.halves": halves}


class Rejected(Exception):
    """The value to emit is too large, or not moderate; it is omitted."""


def concrete(shape: Shape, values: Mapping[str, int]) -> tuple[int, ...]:
    """The extents of `shape` with symbols at `values`."""
    return tuple(dims.evaluate(d, values) for d in shape)


def random_array(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: str, extreme: bool
) -> Array:
    """Numbers around 0; `extreme` ones include NaN, infinities, zeros and limits."""
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if is_float(dtype):
        values = np.asarray(rng.standard_normal(shape), dtype)
        special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 3e4, -3e4, 1e-15], dtype)
    else:
        values = np.asarray(rng.integers(-4 if is_signed(dtype) else 0, 5, shape), dtype)
        limits = np.iinfo(dtype)
        special = np.array([limits.min, limits.max, 0, 1, limits.max // 2], dtype)
    if not extreme:
        return values
    return np.asarray(np.where(rng.random(shape) < 0.3, rng.choice(special, shape), values), dtype)


class Writer:
    """A program under construction.

    Readable tensors are `known`, or `unknown` if their shape is; `shapes` are the shapes that are
    values.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numpy = np.random.default_rng(seed)
        self.extreme = self.random.random() < 0.15
        self.dtype = self.choice(DTYPES)
        self.builder = BlockBuilder()
        self.known: list[Expr] = []
        self.unknown: list[Expr] = []
        self.shapes: list[Expr] = []
        self.planned: list[tuple[str, Case, Extents]] = []
        self.sizes: dict[str, int] = dict(SAMPLE)
        self.bound: set[str] = set()
        static = STATIC if self.random.random() < 0.4 else SMALL
        extents = static if self.random.random() < 0.2 else (*static, *SYMBOLIC)
        self.pool: list[Dim] = self.random.sample(extents, 4)
        self.extents = self.pool
        self._samples: dict[int, Any] = {}
        self._read: set[int] = set()
        self._alive: list[Expr] = []  # keeps ids unique

    # --- choices ------------------------------------------------------------------------

    def chance(self, probability: float) -> bool:
        """True with `probability`."""
        return self.random.random() < probability

    def choice(self, options: Sequence[T]) -> T:
        """One of `options`."""
        return self.random.choice(options)

    def shape(self, least: int = 0, most: int = 3) -> Shape:
        """A shape of the `extents`, of a rank that its size allows."""
        rank = self.random.randint(least, most)
        extents = [1 if self.chance(0.1) else self.choice(self.extents) for _ in range(rank)]
        while self._size(tuple(extents)) > MOST_ELEMENTS:
            extents.pop()
        return tuple(extents)

    def part(self, whole: Shape) -> Shape:
        """A shape that broadcasts to `whole`."""
        kept = whole[self.random.randint(0, len(whole)) if self.chance(0.5) else 0 :]
        return tuple(1 if self.chance(0.2) else d for d in kept)

    def tensor(self, kinds: str = "fiub", least: int = 0) -> Expr:
        """A tensor to read, often recent, with a dtype of `kinds` and at least `least` axes."""
        fit = [v for v in self.known if _kind(v) in kinds and len(shape_of(v)) >= least]
        if not fit:
            raise Rejected
        return self.choice(fit[-4:]) if self.chance(0.6) else self.choice(fit)

    def beside(self, x: Expr, dtype: str | None = None) -> Expr:
        """An operand of `dtype`, by default that of `x`, which broadcasts with it."""
        dtype, whole = dtype or dtype_of(x), shape_of(x)
        fit = [v for v in self.known if dtype_of(v) == dtype and _broadcast(shape_of(v), whole)]
        if self.chance(0.75) and fit:
            return self.choice(fit)
        return self.constant(self.part(whole), dtype)

    def constant(self, shape: Shape, dtype: str) -> Constant:
        """A weight, often a scalar; symbolic axes have extent 1."""
        if self.chance(0.4) or any(not isinstance(d, int) for d in shape):
            shape = ()
        extents = concrete(shape, {})
        if shape or np.dtype(dtype).kind == "b":
            return Constant(random_array(self.numpy, extents, dtype, extreme=False))
        number = abs(self.choice(NUMBERS)) if not is_signed(dtype) else self.choice(NUMBERS)
        ones = (1,) * self.choice((0, 0, 0, 1, 2))
        return Constant(np.full(ones, number, dtype))

    # --- emission -----------------------------------------------------------------------

    def op(self, name: str, *operands: Expr, **attrs: Attr) -> Expr:
        """Emit a call of the operator `name`, whose result has a known shape."""
        value = call(name, *operands, **attrs)
        if isinstance(value.struct_info, TensorStructInfo) and value.struct_info.dims is None:
            raise Rejected
        return self.emit(value)

    def emit(self, value: Expr) -> Expr:
        """Emit `value` and make it readable.

        Raises `Rejected` if it is too large, or not moderate for the sample's sizes.
        """
        try:
            sample = self.sample(value)
        except RunError:
            raise Rejected from None
        return self.emit_sampled(value, sample)

    def emit_sampled(self, value: Expr, sample: Any) -> Expr:
        """As `emit`, of a value whose `sample` is known."""
        self._check(value.struct_info, sample)
        self._alive.append(value)
        for child in children(value):
            self._read.update(map(id, (child, *children(child))))
        return self.enter(self.builder.emit(value), sample)

    def cast(self, value: Expr, info: TensorStructInfo) -> Expr:
        """Emit a match_cast to `info`, whose symbols have values in `sizes`."""
        sample = self.sample(value)
        if sample.shape != concrete(info.dims or (), self.sizes):
            raise Rejected
        self._check(info, sample)
        self._alive.append(value)
        self._read.add(id(value))
        return self.enter(self.builder.emit_match_cast(value, info), sample)

    def enter(self, value: Expr, sample: Any) -> Expr:
        """Make `value` readable."""
        self._alive.append(value)
        self._samples[id(value)] = sample
        info = value.struct_info
        if isinstance(info, ShapeStructInfo):
            self.shapes.append(value)
        if isinstance(info, TensorStructInfo):
            (self.unknown if info.dims is None else self.known).append(value)
        return value

    @contextmanager
    def apart(self) -> Generator[None]:
        """A context whose values cannot be read afterwards."""
        known, unknown, shapes = list(self.known), list(self.unknown), list(self.shapes)
        try:
            yield
        finally:
            self.known, self.unknown, self.shapes = known, unknown, shapes

    def unread(self) -> list[Expr]:
        """The tensors that are unread so far."""
        return [v for v in (*self.known, *self.unknown) if id(v) not in self._read]

    def sample(self, value: Expr) -> Any:
        """The value of `value` for the sample's sizes."""
        match value:
            case Constant(data=data):
                return data
            case ShapeExpr(values=values):
                return concrete(values, self.sizes)
            case PrimValue(value=number):
                return number if isinstance(number, float) else concrete((number,), self.sizes)[0]
            case Tuple(fields=fields):
                return tuple(map(self.sample, fields))
            case TupleGetItem(tuple_value=inner, index=index):
                return self.sample(inner)[index]
            case Call(args=(ExternFunc(name=name), operand)):
                return PACKED[name](self.sample(operand))
            case Call(op=Op() as op, args=args, attrs=attrs):
                return apply_op(op, tuple(map(self.sample, args)), attrs)
            case _:
                return self._samples[id(value)]

    def _size(self, shape: Shape) -> int:
        return math.prod(concrete(shape, self.sizes | LARGE))

    def _check(self, info: StructInfo, sample: Any) -> None:
        if isinstance(info, TupleStructInfo):
            for field, part in zip(info.fields, sample, strict=True):
                self._check(field, part)
        known = info.dims if isinstance(info, TensorStructInfo) else None
        if known and self._size(known) > MOST_ELEMENTS:
            raise Rejected
        if self.extreme or not isinstance(sample, np.ndarray) or sample.dtype.kind == "b":
            return
        if not np.all(np.isfinite(sample)) or np.any(np.abs(sample.astype(np.float64)) > MOST):
            raise Rejected


def dtype_of(value: Expr) -> str:
    """The dtype of a tensor."""
    info = value.struct_info
    assert isinstance(info, TensorStructInfo)
    assert info.dtype is not None
    return info.dtype


def shape_of(value: Expr) -> Shape:
    """The symbolic shape of a tensor."""
    info = value.struct_info
    assert isinstance(info, TensorStructInfo)
    assert info.dims is not None
    return info.dims


def _kind(value: Expr) -> str:
    return np.dtype(dtype_of(value)).kind


def _broadcast(a: Shape, b: Shape) -> bool:
    pairs = zip(reversed(a), reversed(b), strict=False)
    return all(x == y or 1 in (x, y) for x, y in pairs)
