"""What loop functions compute of constants alone is computed when the module is built.

A schedule that needs an operand in another form, such as a weight in panels, makes it by loops of
their own before the others.  Where that operand is a constant in every call, these loops become a
function of their own, and its results the constants that the calls pass: it is run when they are
stored.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from relax_egraph.ir.expr import Call, Constant, Expr, Function, GlobalVar, Tuple
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import Op
from relax_egraph.ir.walk import post_order_visit
from relax_egraph.lower import jit
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.passes.infra import module_pass
from relax_egraph.tir.analysis import buffers_of, symbols_of_stmt
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.rewrite import loads, statements, stores
from relax_egraph.tir.stmt import PrimFunc, Seq, Stmt, TensorIntrinsic, seq
from relax_egraph.vm.deferred import deferred, made
from relax_egraph.vm.storage import aligned_bytes

CONSTANT_INPUTS = "constant_inputs"
"""The attribute of a loop function that says which of its inputs are constants in every call."""

Array = npt.NDArray[np.generic]


@module_pass(name="mark_constant_inputs")
def mark_constant_inputs(module: IRModule) -> IRModule:
    """Say of loop functions which inputs are constants, so that schedules may count on it."""
    found: dict[str, set[int]] = {}
    for call in _calls(module):
        assert isinstance(call.args[0], GlobalVar)
        assert isinstance(call.args[1], Tuple)
        here = {k for k, arg in enumerate(call.args[1].fields) if isinstance(arg, Constant)}
        name = call.args[0].name
        found[name] = found[name] & here if name in found else here
    functions = dict(module.functions)
    for name, constant in found.items():
        function = functions[name]
        if isinstance(function, PrimFunc) and constant and "schedule" not in function.attrs:
            attrs = {**function.attrs, CONSTANT_INPUTS: tuple(sorted(constant))}
            functions[name] = replace(function, attrs=attrs)
    return IRModule(functions)


@module_pass(name="prepare_constants")
def prepare_constants(module: IRModule) -> IRModule:
    """Pass scheduled loop functions what they compute of constant inputs, as `Deferred`."""
    parts: dict[str, _Parts] = {}
    for name, function in module.functions.items():
        if isinstance(function, PrimFunc) and (found := _parted(function)) is not None:
            parts[name] = found
    mutator = _Preparer(parts)
    functions: dict[str, BaseFunc] = {}
    for name, function in module.functions.items():
        if name in parts:
            functions[name] = parts[name].rest
        elif isinstance(function, PrimFunc):
            functions[name] = _unmarked(function)
        elif isinstance(function, Function):
            new = mutator.visit_expr(function)
            assert isinstance(new, Function)
            functions[name] = new
        else:
            functions[name] = function
    return IRModule(functions)


def _unmarked(function: PrimFunc) -> PrimFunc:
    if CONSTANT_INPUTS not in function.attrs:
        return function
    attrs = {k: v for k, v in function.attrs.items() if k != CONSTANT_INPUTS}
    return replace(function, attrs=attrs)


def _calls(module: IRModule) -> list[Call]:
    found: list[Call] = []

    def visit(expr: Expr) -> None:
        if _is_call_of_loops(expr):
            assert isinstance(expr, Call)
            found.append(expr)

    for _, function in module.relax_functions():
        post_order_visit(function, visit)
    return found


def _is_call_of_loops(expr: Expr) -> bool:
    return (
        isinstance(expr, Call)
        and isinstance(expr.op, Op)
        and expr.op.name in ("call_tir", "call_tir_inplace")
        and isinstance(expr.args[0], GlobalVar)
        and isinstance(expr.args[1], Tuple)
    )


@dataclass(frozen=True, slots=True)
class _Parts:
    """A function in two: `first` takes the inputs numbered `taken`, `rest` its results instead.

    `kept` are the numbers of the inputs that `rest` still takes; the results come after them.
    """

    first: PrimFunc
    rest: PrimFunc
    taken: tuple[int, ...]
    kept: tuple[int, ...]


def _parted(function: PrimFunc) -> _Parts | None:
    """`function` in two parts, if some of its loops are over nothing but constant inputs."""
    numbers = function.attrs.get(CONSTANT_INPUTS, ())
    assert isinstance(numbers, tuple)
    inputs = function.inputs
    known = {b for k, b in enumerate(inputs) if k in numbers}
    nests = function.body.body if isinstance(function.body, Seq) else (function.body,)
    moved = _movable(nests, known, function.allocs)
    first = [nest for k, nest in enumerate(nests) if k in moved]
    rest = [nest for k, nest in enumerate(nests) if k not in moved]
    made = dict.fromkeys(b for nest in first for b in _written(nest))
    needed = set[Buffer]().union(*map(buffers_of, rest))
    results = tuple(b for b in made if b in needed)
    if not results:
        return None
    used = set[Buffer]().union(*map(buffers_of, first))
    taken = tuple(k for k, b in enumerate(inputs) if b in used)
    kept = tuple(k for k, b in enumerate(inputs) if b in needed or b not in used)
    making = PrimFunc(
        (*(inputs[k] for k in taken), *results),
        seq(*first),
        len(results),
        allocs=tuple(b for b in made if b not in results),
        attrs={"schedule": function.attrs["schedule"]},
    )
    using = replace(
        _unmarked(function),
        params=(*(inputs[k] for k in kept), *results, *function.outputs),
        body=seq(*rest),
        allocs=tuple(b for b in function.allocs if b not in made),
    )
    same_symbols = using.symbols == function.symbols and not making.symbols
    return _Parts(making, using, taken, kept) if same_symbols else None


def _movable(
    nests: Sequence[Stmt], known: Collection[Buffer], allocs: Collection[Buffer]
) -> frozenset[int]:
    """The numbers of the `nests` that can run when the module is built, in order.

    They read what is `known`, or what such nests write.  A buffer moves with all nests that write
    it, as interior and border of padded data; one that is filled and made of nothing else stays.
    """
    moved = {k for k, nest in enumerate(nests) if _is_plain(nest, allocs)}
    while True:
        writers: dict[Buffer, list[int]] = {}
        for k, nest in enumerate(nests):
            for buffer in _written(nest):
                writers.setdefault(buffer, []).append(k)
        here = {b for b, by in writers.items() if moved.issuperset(by)}
        of_data = {b for b in here if any(_read(nests[k]) for k in writers[b])}
        kept = {
            k
            for k in moved
            if here.issuperset(_written(nests[k]))
            and not of_data.isdisjoint(_written(nests[k]))
            and all(b in known or b in here for b in _read(nests[k]))
            and not any(_touches(nests[j], _written(nests[k])) for j in range(k) if j not in moved)
        }
        if kept == moved:
            return frozenset(moved)
        moved = kept


def _written(nest: Stmt) -> tuple[Buffer, ...]:
    return tuple(dict.fromkeys(store.buffer for store in stores(nest)))


def _read(nest: Stmt) -> set[Buffer]:
    """The buffers that `nest` reads and does not write."""
    return {load.buffer for load in loads(nest)} - {*_written(nest)}


def _touches(nest: Stmt, buffers: Sequence[Buffer]) -> bool:
    return any(b in buffers for b in buffers_of(nest))


def _is_plain(nest: Stmt, allocs: Collection[Buffer]) -> bool:
    """Whether `nest` writes scratch of known size alone, and needs no symbol: calls know these."""
    if symbols_of_stmt(nest) or any(isinstance(s, TensorIntrinsic) for s in statements(nest)):
        return False
    return all(b in allocs and all(isinstance(d, int) for d in b.shape) for b in _written(nest))


class _Preparer(ExprMutator):
    """Passes results in the place of constants; what is computed of the same ones, once."""

    def __init__(self, parts: Mapping[str, _Parts]) -> None:
        super().__init__()
        self._parts = parts
        self._kernels = _linked({name: p.first for name, p in parts.items()})
        self._made: dict[tuple[str, tuple[int, ...]], tuple[Constant, ...]] = {}

    def visit_call(self, call: Call) -> Expr:
        visited = super().visit_call(call)
        if not isinstance(visited, Call) or not _is_call_of_loops(visited):
            return visited
        callee, args, *sizes = visited.args
        assert isinstance(callee, GlobalVar)
        assert isinstance(args, Tuple)
        if callee.name not in self._parts:
            return visited
        parts = self._parts[callee.name]
        constants = [args.fields[k] for k in parts.taken]
        assert all(isinstance(c, Constant) for c in constants)
        made = self._of(callee.name, parts, [c for c in constants if isinstance(c, Constant)])
        operands = (*(args.fields[k] for k in parts.kept), *made)
        new = GlobalVar(callee.name, parts.rest.struct_info)
        return replace(visited, args=(new, Tuple(operands), *sizes))

    def _of(self, name: str, parts: _Parts, constants: Sequence[Constant]) -> tuple[Constant, ...]:
        key = (name, tuple(id(c.data) for c in constants))
        if key not in self._made:
            given = tuple(c.data for c in constants)
            self._made[key] = _Run(self._kernels[name], given, parts.first.outputs).constants()
        return self._made[key]


@dataclass(slots=True)
class _Run:
    """One run of `kernel`, of what is `given`, when the first of its results is wanted."""

    kernel: jit.Kernel
    given: tuple[Array, ...]
    outputs: tuple[Buffer, ...]
    results: tuple[Array, ...] = ()

    def constants(self) -> tuple[Constant, ...]:
        """What stands for the results."""
        return tuple(
            Constant(deferred(_extents(b), np.dtype(b.dtype), partial(self.result, k)))
            for k, b in enumerate(self.outputs)
        )

    def result(self, number: int) -> Array:
        """Result `number`; what it is computed of is let go."""
        if not self.results:
            results = tuple(map(_room, self.outputs))
            self.kernel(*(np.ascontiguousarray(made(a)) for a in self.given), *results)
            self.given, self.results = (), results
        return self.results[number]


def _linked(functions: Mapping[str, PrimFunc]) -> Mapping[str, jit.Kernel]:
    return jit.link(jit.compile_kernels(functions, intrinsics=INTRINSICS))


def _room(buffer: Buffer) -> Array:
    """Zeros for `buffer`, on a line of the cache: what is beside a narrow panel is read too."""
    shape, dtype = _extents(buffer), np.dtype(buffer.dtype)
    memory = aligned_bytes(int(np.prod(shape)) * dtype.itemsize)
    memory[:] = 0
    return np.ndarray(shape, dtype, memory.data)


def _extents(buffer: Buffer) -> tuple[int, ...]:
    return tuple(d for d in buffer.shape if isinstance(d, int))
