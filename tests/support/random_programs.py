"""Random programs over all operators: ``random_program(seed)`` is deterministic."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from relax_egraph.ir import dims
from relax_egraph.ir.expr import Constant, Expr, Tuple, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.struct_info import Shape, TensorStructInfo, tensor
from tests.support.random_control import (
    call_of_layer,
    conditional,
    layer,
    take_steps,
    without_branches,
)
from tests.support.random_instances import plan
from tests.support.random_networks import plan_part
from tests.support.random_writer import (
    DTYPES,
    SAMPLE,
    Array,
    Rejected,
    Writer,
    concrete,
    random_array,
)
from tests.support.widths import target_of


@dataclass(frozen=True, slots=True)
class RandomProgram:
    """A module with a function ``main`` of arrays with the shapes and dtypes `takes`.

    Some inputs of an `extreme` program are NaN, infinite or the limits of their dtype.  It is
    compiled for `target`.
    """

    seed: int
    module: IRModule
    takes: tuple[tuple[Shape, str], ...]
    extreme: bool
    target: str

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols of the parameters, sorted."""
        return tuple(sorted({s for shape, _ in self.takes for d in shape for s in dims.symbols(d)}))

    def inputs(self, values: Mapping[str, int]) -> list[Array]:
        """Arrays for the parameters with symbols at `values`; deterministic."""
        return _inputs(self.seed, self.takes, values, self.extreme)


def random_program(seed: int) -> RandomProgram:
    """The program of `seed`."""
    w = Writer(seed)
    shapes = [w.shape() for _ in range(w.random.randint(1, 3))]
    drawn = [(s, w.dtype if w.chance(0.85) else w.choice(DTYPES)) for s in shapes]
    drawn += [take for _ in range(w.choice((0, 1, 1, 2, 3))) for take in plan(w)]
    drawn += plan_part(w) if w.chance(0.4) else []
    mentioned = {s for shape, _ in drawn for d in shape for s in dims.symbols(d)}
    alone = {d for shape, _ in drawn for d in shape}
    lacking = [dims.symbol(s) for s in sorted(mentioned) if dims.symbol(s) not in alone]
    takes = (*drawn, *(((symbol,), w.dtype) for symbol in lacking))
    samples = _inputs(seed, takes, SAMPLE, w.extreme)
    if w.chance(0.15) and _bind(w, takes[:1]):
        layer(w, Var("a", tensor(*takes[0])), samples[0])
    _bind(w, takes)
    params = [Var(f"x{i}", _known(w, *take)) for i, take in enumerate(takes)]
    with w.builder.function("main", params):
        for param, sample in zip(params, samples, strict=True):
            w.enter(param, sample)
        w.builder.emit_func_output(_body(w, params))
    functions = w.builder.get().functions
    written = {name: functions[name] for name in without_branches(list(functions))}
    return RandomProgram(seed, IRModule(written), takes, w.extreme, target_of(seed))


def _bind(w: Writer, takes: Sequence[tuple[Shape, str]]) -> bool:
    """Declare the symbols of `takes` in `w`; returns whether each is a dimension by itself."""
    extents = {d for shape, _ in takes for d in shape}
    w.bound = {s for d in extents for s in dims.symbols(d)}
    w.extents = [d for d in w.pool if dims.symbols(d) <= w.bound] or [2]
    return extents.issuperset(map(dims.symbol, w.bound))


def _inputs(
    seed: int, takes: Sequence[tuple[Shape, str]], values: Mapping[str, int], extreme: bool
) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [random_array(rng, concrete(s, values), dtype, extreme) for s, dtype in takes]


def _known(w: Writer, shape: Shape, dtype: str) -> TensorStructInfo:
    """The declared info of a parameter: all, or sometimes less."""
    if w.chance(0.92) or any(not isinstance(d, int) for d in shape):
        return tensor(shape, dtype)
    return tensor(None, dtype, w.choice((-1, len(shape))))


def _body(w: Writer, params: Sequence[Var]) -> Expr:
    """Write blocks of steps, and return the result."""
    seen: list[Expr] = []
    for _ in range(w.choice((1, 1, 1, 2))):
        if w.chance(0.08):
            seen += _steps(w)
            continue
        with w.apart(), w.builder.dataflow():
            chosen = _steps(w)
            samples = [w.sample(v) for v in chosen]
            outputs = [w.builder.emit_output(v) for v in chosen]
        seen += [w.enter(v, s) for v, s in zip(outputs, samples, strict=True)]
        if w.chance(0.2):
            with suppress(Rejected):
                seen.append(conditional(w))
    return _result(w, seen, params)


def _steps(w: Writer) -> list[Expr]:
    """Write some steps; returns at least one value that is visible outside the block."""
    take_steps(w, 24)
    with suppress(Rejected):
        call_of_layer(w)
        take_steps(w, 4)
    seen = [v for v in w.unread() if w.chance(0.8)][-6:]
    readable = [*w.known, *w.unknown]
    if not seen or w.chance(0.3):
        seen += [w.choice(readable) for _ in range(w.choice((1, 1, 2)))]
    return seen


def _result(w: Writer, computed: Sequence[Expr], params: Sequence[Expr]) -> Expr:
    """One value, or a tuple in which values may repeat, be constants or be parameters."""
    candidates = [*computed, *params]
    last = w.choice(computed)
    if w.chance(0.2):
        return last
    fields = [*computed, *(w.choice(candidates) for _ in range(w.choice((0, 0, 0, 1, 2))))]
    w.random.shuffle(fields)
    if w.chance(0.1):
        fields.append(Constant(np.ones((2, 2), np.float32)))
    if w.chance(0.1):
        return Tuple((*fields, Tuple((last, w.choice(candidates)))))
    return Tuple(tuple(fields))
