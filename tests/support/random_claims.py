"""Random modules with declared, unproven struct info in every place that can have it.

``claiming_module(seed)`` is deterministic.  No claim is provably false: whether the module refuses
a call depends on the sizes of its arguments.
"""

import random
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Dims: TypeAlias = tuple[str, ...]
"""Extents as text: a symbol, a number, or a sum."""

SYMBOLS = ("n", "m", "k")
SIZES = (1, 3, 5)
"""The values of symbols, which are also the declared numbers, so that claims may hold."""


def doubled(x: Array) -> Array:
    """The packed function of the modules."""
    return x + x


PACKED = {"test.doubled": doubled}

_UNARY = ("R.tanh", "R.abs", "R.negative", "R.nn.relu")
_BINARY = ("R.add", "R.multiply", "R.maximum")

_BODY = " " * 8

_HEAD = """\
@I.ir_module
class Module:
    @R.function(private=True)
    def part(x: {taken}) -> {promised}:
{symbols}        with R.dataflow():
            y = R.tanh(x)
            R.output(y)
        return y
    @R.function
    def main(
        a: {a},
        b: {b},
        w: {w},
        u: R.Tensor(ndim=1, dtype="float32"),
        c: R.Tensor((), "bool"),
    ){ret}:
        n, m, k = T.int64(), T.int64(), T.int64()
        cls = Module
"""


@dataclass(frozen=True)
class Value:
    """A variable in scope, with its rank, and its extents if the program knows them."""

    name: str
    rank: int
    dims: Dims | None


@dataclass
class Writer:
    """The lines of a function, and the variables that they may read."""

    random: random.Random
    lines: list[str] = field(default_factory=list[str])
    values: list[Value] = field(default_factory=list[Value])
    count: int = 0

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self.random.random() < probability

    def dim(self) -> str:
        """A symbol or a number."""
        return self.random.choice((*SYMBOLS, *SYMBOLS, *map(str, SIZES)))

    def value(self, rank: int | None = None) -> Value:
        """A variable to read, preferably a recent one."""
        fit = [v for v in self.values if rank in (None, v.rank)]
        return self.random.choice(fit[-4:] if self.chance(0.6) else fit)

    def claimed(self, rank: int, dims: Dims | None) -> Dims | None:
        """Extents to declare for a value: some of its known ones."""
        if rank == 0 or self.chance(0.75):
            return dims
        wanted = list(dims or (self.dim() for _ in range(rank)))
        place = self.random.randrange(rank)
        other = self.dim()
        if not (other.isdigit() and wanted[place].isdigit()):
            wanted[place] = other
        return tuple(wanted)

    def bind(self, indent: str, text: str, rank: int, dims: Dims | None) -> Value:
        """Bind a new variable, perhaps with a stronger declaration; it may stay unread."""
        self.count += 1
        name = f"v{self.count}"
        wanted = self.claimed(rank, dims)
        way = self.random.random()
        if wanted is None or wanted == dims:
            self.lines.append(f"{indent}{name} = {text}")
        elif way < 0.6:
            self.lines.append(f"{indent}{name}: {info(wanted)} = {text}")
        else:
            self.lines.append(f"{indent}{name}_ = {text}")
            self.lines.append(f"{indent}{name} = R.match_cast({name}_, {info(wanted)})")
        value = Value(name, rank, wanted)
        self.values.append(value)
        return value

    def step(self, indent: str, apart: bool) -> None:
        """One computation; `apart` from dataflow blocks it may be a conditional."""
        ways = [self.unary, self.binary, self.binary, self.constant, self.sums, self.moved]
        ways += [self.product, self.tuple, self.packed, self.call]
        self.random.choice([*ways, self.branch] if apart else ways)(indent)

    def unary(self, indent: str) -> None:
        x = self.value()
        self.bind(indent, f"{self.random.choice(_UNARY)}({x.name})", x.rank, x.dims)

    def binary(self, indent: str) -> None:
        x = self.value()
        y = self.value(x.rank)
        dims = broadcast(x.dims, y.dims)
        if dims != ("never",):
            text = f"{self.random.choice(_BINARY)}({x.name}, {y.name})"
            self.bind(indent, text, x.rank, dims)

    def constant(self, indent: str) -> None:
        x = self.value()
        text = self.random.choice(
            ("{0}", "R.zeros_like({0})", "R.multiply({0}, {1})", "R.subtract({0}, {0})")
        )
        self.bind(indent, text.format(x.name, 'R.const(0.0, "float32")'), x.rank, x.dims)

    def sums(self, indent: str) -> None:
        x = self.value()
        if x.rank:
            rest = None if x.dims is None else x.dims[1:]
            self.bind(indent, f"R.sum({x.name}, axis=[0])", x.rank - 1, rest)

    def moved(self, indent: str) -> None:
        x = self.value(2)
        if x.dims is not None and self.chance(0.5):
            first, second = self.dim(), self.dim()
            numbers = [d for d in (*x.dims, first, second) if d.isdigit()]
            if len(numbers) < 4:
                text = f"R.reshape({x.name}, R.shape([{first}, {second}]))"
                self.bind(indent, text, 2, (first, second))
            return
        dims = None if x.dims is None else (x.dims[1], x.dims[0])
        self.bind(indent, f"R.permute_dims({x.name})", 2, dims)

    def product(self, indent: str) -> None:
        x, y = self.value(2), self.value(2)
        if x.dims is None or y.dims is None:
            self.bind(indent, f"R.matmul({x.name}, {y.name})", 2, None)
        elif not (x.dims[1].isdigit() and y.dims[0].isdigit() and x.dims[1] != y.dims[0]):
            self.bind(indent, f"R.matmul({x.name}, {y.name})", 2, (x.dims[0], y.dims[1]))

    def tuple(self, indent: str) -> None:
        x, y = self.value(), self.value()
        self.count += 1
        name, wanted = f"t{self.count}", [self.claimed(v.rank, v.dims) for v in (x, y)]
        infos = ", ".join(info(w, v.rank) for w, v in zip(wanted, (x, y), strict=True))
        declared = f": R.Tuple({infos})" if self.chance(0.6) else ""
        self.lines.append(f"{indent}{name}{declared} = ({x.name}, {y.name})")
        place = self.random.randrange(2)
        known = wanted[place] if declared else (x, y)[place].dims
        self.bind(indent, f"{name}[{place}]", (x, y)[place].rank, known)

    def packed(self, indent: str) -> None:
        x = self.value()
        wanted = self.claimed(x.rank, x.dims)
        claim = info(wanted, x.rank)
        text = f'R.call_pure_packed("test.doubled", {x.name}, sinfo_args=({claim},))'
        self.bind(indent, text, x.rank, wanted)

    def call(self, indent: str) -> None:
        x = self.value(1)
        if x.dims and {x.dims[0], self.taken} < set(map(str, SIZES)) and x.dims != (self.taken,):
            return
        self.count += 1
        name = f"v{self.count}"
        self.lines.append(f"{indent}{name} = cls.part({x.name})")
        self.values.append(Value(name, 1, self.part_of(x)))

    taken: str = "n"
    promised: str = "n"

    def part_of(self, x: Value) -> Dims | None:
        """The extents of the result of ``part`` for a vector `x`."""
        return (self.promised,) if self.promised.isdigit() else x.dims

    def branch(self, indent: str) -> None:
        x, y = self.value(1), self.value(1)
        self.count += 1
        name = f"v{self.count}"
        dims = self.claimed(1, x.dims)
        declared = "" if dims is None else f": {info(dims)}"
        inside, known = f"{indent}    ", list(self.values)
        for head, value in (("if c:", x), ("else:", y)):
            self.lines.append(f"{indent}{head}")
            self.step(inside, apart=False)
            self.values = list(known)
            text = value.name if self.chance(0.3) else f"R.tanh({value.name})"
            self.lines.append(f"{inside}{name}{declared} = {text}")
        both = x.dims if x.dims == y.dims else None
        self.values.append(Value(name, 1, dims if declared else both))


def info(dims: Dims | None, rank: int = 1) -> str:
    """The struct info of a tensor of these extents."""
    if dims is None:
        return f'R.Tensor(ndim={rank}, dtype="float32")'
    return f'R.Tensor(({"".join(f"{d}, " for d in dims)}), "float32")'


def broadcast(x: Dims | None, y: Dims | None) -> Dims | None:
    """The broadcast of two shapes of one rank; ``None`` if it is unknown."""
    if x is None or y is None:
        return None
    pairs = list(zip(x, y, strict=True))
    if any(a.isdigit() and b.isdigit() and a != b and "1" not in (a, b) for a, b in pairs):
        return ("never",)
    if any(a != b and "1" not in (a, b) for a, b in pairs):
        return None
    return tuple(b if a == "1" else a for a, b in pairs)


def write_blocks(w: Writer) -> list[Value]:
    """Write blocks of steps; returns the values that are read after the last one."""
    seen: list[Value] = []
    for _ in range(w.random.choice((1, 1, 2))):
        before = list(w.values)
        w.lines.append(f"{_BODY}with R.dataflow():")
        for _ in range(w.random.randint(2, 6)):
            w.step(f"{_BODY}    ", apart=False)
        written = [v for v in w.values if v not in before]
        seen = w.random.sample(written, min(len(written), 2))
        if not seen:
            w.unary(f"{_BODY}    ")
            seen = w.values[-1:]
        w.lines.append(f"{_BODY}    R.output({', '.join(v.name for v in seen)})")
        w.values = [*before, *seen]
        for _ in range(w.random.choice((0, 0, 1, 3))):
            w.step(_BODY, apart=True)
    return seen


def claiming_module(seed: int) -> str:
    """The module of `seed`, as script."""
    w = Writer(random.Random(seed))
    w.taken, w.promised = w.random.choice((("p", "p"), ("p", "3"), ("5", "5"), ("3", "3")))
    shapes = {"a": ("n",), "b": ("m",), "w": ("k", "m")}
    w.values = [Value(name, len(dims), dims) for name, dims in shapes.items()]
    w.values.append(Value("u", 1, None))
    seen = write_blocks(w)
    chosen = [w.value() for _ in range(w.random.choice((1, 1, 2)))] + seen[-1:]
    names = ", ".join(v.name for v in chosen)
    w.lines.append(f"{_BODY}return {names if len(chosen) == 1 else f'({names})'}")
    claims = [info(w.claimed(v.rank, v.dims), v.rank) for v in chosen]
    promised = claims[0] if len(claims) == 1 else f"R.Tuple({', '.join(claims)})"
    head = _HEAD.format(
        taken=info((w.taken,)),
        promised=info((w.promised,)),
        symbols="        p = T.int64()\n" if "p" in (w.taken, w.promised) else "",
        **{name: info(dims) for name, dims in shapes.items()},
        ret=f" -> {promised}" if w.chance(0.5) else "",
    )
    return head + "".join(f"{line}\n" for line in w.lines)


def arguments(seed: int) -> list[Any]:
    """Arrays for ``main`` of sizes chosen by `seed`; for a third of seeds all sizes are equal."""
    draw = random.Random(seed)
    sizes = [draw.choice(SIZES) for _ in range(4)] if seed % 3 else [draw.choice(SIZES)] * 4
    n, m, k, u = sizes
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((n,), (m,), (k, m), (u,))]
    return [*arrays, np.asarray(draw.random() < 0.5)]
