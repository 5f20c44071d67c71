"""Scheduled functions: their loops, and the operands that are prepared for them.

A schedule that needs an operand in another form, such as packed weights, computes it by a nest of
its own.  A nest that reads only constants is removed from the function: its results become inputs,
which are computed once, when a program is built.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from relax_egraph.ir import tolerance
from relax_egraph.ir.expr import FunctionAttrs
from relax_egraph.lower.schedule.packed import Panels
from relax_egraph.tir.analysis import buffers_of, symbols_of_stmt
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.rewrite import loads, statements, stores
from relax_egraph.tir.stmt import PrimFunc, Stmt, TensorIntrinsic, seq

CONSTANT_INPUTS = "constant_inputs"
"""The attribute of an unscheduled function that lists the numbers of its constant inputs."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Inputs of a scheduled function, the `results`, that are computed from constant `sources`.

    The `recipe` is a loop function from sources to results, or the packed form of a single source.
    """

    sources: tuple[Buffer, ...]
    results: tuple[Buffer, ...]
    recipe: PrimFunc | Panels


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A `function` with its loops; its inputs are those of the original function, or `prepared`."""

    function: PrimFunc
    prepared: tuple[Prepared, ...] = ()

    def with_attrs(self, attrs: FunctionAttrs) -> "Scheduled":
        """The same with further `attrs` of the function."""
        function = replace(self.function, attrs={**self.function.attrs, **attrs})
        return replace(self, function=function)


def constant_inputs(function: PrimFunc) -> tuple[Buffer, ...]:
    """The inputs of constant size that are constants in all calls of `function`."""
    numbers = function.attrs.get(CONSTANT_INPUTS, ())
    assert isinstance(numbers, tuple)
    return tuple(b for k, b in enumerate(function.inputs) if k in numbers and _has_known_size(b))


def assemble(
    function: PrimFunc,
    anchor: str,
    body: Sequence[Stmt | Prepared],
    allocs: Sequence[Buffer] = (),
) -> Scheduled:
    """`function` with the nests of `body`, its remaining allocations, and `allocs`.

    Each nest computes its buffers completely: no other nest of `body` writes them.  A prepared
    operand comes after its first source, which is dropped if no other nest reads it.  The attribute
    ``schedule`` is `anchor`.
    """
    prepared = [p for p in body if isinstance(p, Prepared)]
    nests = [nest for nest in body if not isinstance(nest, Prepared)]
    scratch = (*function.allocs, *allocs)
    early = _of_constants(nests, constant_inputs(function), scratch)
    whole = seq(*(nest for k, nest in enumerate(nests) if k not in early))
    used = set(buffers_of(whole))
    if early:
        loops = seq(*(nests[k] for k in early))
        prepared += _by_loops(loops, function.inputs, used, anchor)
    inputs: list[Buffer] = []
    for b in function.inputs:
        if b in used or not any(b in p.sources for p in prepared):
            inputs.append(b)
        inputs += [r for p in prepared if p.sources[0] is b for r in p.results]
    attrs = {
        k: v for k, v in function.attrs.items() if k not in (CONSTANT_INPUTS, tolerance.ATTRIBUTE)
    }
    result = replace(
        function,
        params=(*inputs, *function.outputs),
        body=whole,
        allocs=tuple(b for b in scratch if b in used and b not in inputs),
        attrs={**attrs, "schedule": anchor},
    )
    return Scheduled(result, tuple(prepared))


def _of_constants(
    nests: Sequence[Stmt], constants: Sequence[Buffer], scratch: Sequence[Buffer]
) -> list[int]:
    """The numbers of the `nests` that compute `scratch` of constant size only from `constants`.

    Buffers that are filled without reading anything are not prepared.
    """
    available = set(constants)
    writers = Counter(b for nest in nests for b in _written(nest))
    accessed, numbers = set[Buffer](), list[int]()
    for k, nest in enumerate(nests):
        written = _written(nest)
        read = {load.buffer for load in loads(nest)} - written
        is_whole = all(
            b in scratch and b not in accessed and writers[b] == 1 and _has_known_size(b)
            for b in written
        )
        if is_whole and read and read <= available and _is_plain(nest):
            available |= written
            numbers.append(k)
        else:
            accessed.update(buffers_of(nest))
    return numbers


def _by_loops(
    loops: Stmt, inputs: Sequence[Buffer], used: Collection[Buffer], anchor: str
) -> Sequence[Prepared]:
    """The buffers that `loops` write and that are `used` later, as prepared operands."""
    read = {load.buffer for load in loads(loops)}
    written = dict.fromkeys(store.buffer for store in stores(loops))
    sources = tuple(b for b in inputs if b in read)
    results = tuple(b for b in written if b in used)
    between = tuple(b for b in written if b not in used)
    attrs = {"schedule": anchor}
    recipe = PrimFunc((*sources, *results), loops, len(results), allocs=between, attrs=attrs)
    return (Prepared(sources, results, recipe),) if results else ()


def _written(nest: Stmt) -> set[Buffer]:
    return {store.buffer for store in stores(nest)}


def _is_plain(nest: Stmt) -> bool:
    """Whether `nest` needs no symbols, which calls determine, and no micro-kernels."""
    has_call = any(isinstance(s, TensorIntrinsic) for s in statements(nest))
    return not has_call and not symbols_of_stmt(nest)


def _has_known_size(buffer: Buffer) -> bool:
    return all(isinstance(d, int) for d in buffer.shape)
