"""Bounds on the difference of two programs that are equal up to rounding.

`noisy` perturbs every floating-point result of a program by some units in the last place, and the
sign of zeros.  The resulting changes of the outputs, in several runs, bound the changes that an
optimizer may cause by reordering: the condition of each element is measured, not guessed.  Outputs
that noise changes to another kind of number (an infinity, another truth value, another shape) are
not checked.

Rules of class ``fast`` round constants and overflow elsewhere: the noise is then as large as the
error of such constants, and only finite numbers are checked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import RunError
from relax_egraph.ir import dtypes
from relax_egraph.ir.block_builder import call_packed
from relax_egraph.ir.evaluate import RunPrimFunc, evaluate
from relax_egraph.ir.expr import (
    Binding,
    Block,
    Call,
    DataflowVar,
    Expr,
    Function,
    If,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import TensorStructInfo, TupleStructInfo
from tests.support.ops import SAMPLERS
from tests.support.ops.case import Draw

Array: TypeAlias = npt.NDArray[Any]
Packed: TypeAlias = Mapping[str, Callable[..., Any]]

UNITS = 16
"""The maximal noise, in units in the last place."""

FAST = 5e-6
"""The relative error of constants that rules of class ``fast`` recognise."""

RUNS = 6
ALLOWED = 4
"""The allowed error of a result, relative to the largest change by noise."""

VANISHING = 256
"""Numbers up to this multiple of the smallest normal one may become 0, and 0 such a number."""

NOISE = "test.noise"
NOISE_BETWEEN = "test.noise_between"
"""Noise of a product that another one reads, whose infinite elements are a matter of rounding, too.

``(x @ y) @ z`` and ``x @ (y @ z)`` differ there if an operand is infinite.
"""

NOISE_OF_EQUALITY = "test.noise_of_equality"
"""The other truth value, for every second seed, where numbers differ by no more than the noise."""

EQUALITIES = ("equal", "not_equal")

NOISE_OF_SUM = "test.noise_of_sum"
"""Noise of a sum, which is infinite for every second seed where opposite infinities are added.

``a · x - b · x`` is NaN there and ``(a - b) · x`` is not.
"""

SUMS = ("add", "subtract")

CANCELLING = ("nn.gelu", "nn.gelu_tanh", "nn.log_softmax")
"""Operators whose error is relative to their operand, even where their result is small."""

MEASURED = frozenset({"sum", "mean", "max", "min", "matmul"})
"""Operators whose elements have the accuracy that noise of the operands shows."""

OF_SUMS = frozenset({"image.affine_grid", "cumsum", "nn.rotary_embedding"})
"""Operators whose error is relative to their largest element, by default."""


@cache
def is_as_accurate_as_its_largest(name: str) -> bool:
    """Whether an operator's error is relative to its largest element, in its instances."""
    draw = Draw(Random(name))
    says = name in OF_SUMS or any(SAMPLERS[name](draw).error for _ in range(5))
    return says and name not in MEASURED


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a result: `exact` up to `error`, where it is `checked`."""

    exact: Array
    error: Array
    checked: Array


def noisy(module: IRModule) -> IRModule:
    """`module` with the packed function `NOISE` applied to the result of each call."""
    rough = {
        name: replace(f, body=_noisy_sequence(f.body)) if isinstance(f, Function) else f
        for name, f in module.functions.items()
    }
    return IRModule(rough)


def noise(seed: int, *, fast: bool = False) -> Callable[..., Array]:
    """A function that perturbs floating-point numbers by up to `UNITS`, and the sign of zeros.

    With `fast`, the perturbation is at least `FAST`.  Units are those of the number, or of the
    largest number beside it.  A number below the noise, or subnormal, becomes 0 for every second
    seed; such a seed and the one before it have opposite noise, so that numbers near a threshold
    fall on either side.
    """
    rng = np.random.default_rng(seed // 2)
    side = 1 if seed % 2 else -1

    def changed(x: Array, *beside: Array) -> Array:
        if not dtypes.is_float(x.dtype.name):
            return x
        limits = dtypes.limits(x.dtype.name)
        part = max(UNITS * float(limits.eps), FAST if fast else 0.0)
        relative = side * rng.uniform(0.5, 1, x.shape) * rng.choice((-1, 1), x.shape)
        with np.errstate(all="ignore"):
            largest = [np.abs(b) if b is not x else _largest(b) for b in beside]
            most = part * np.maximum.reduce([np.abs(x), *largest])
            gone = (np.abs(x) <= np.maximum(most, VANISHING * limits.tiny)) & (side > 0)
            off = np.where(gone, 0, x + relative * most)
            # A stored 0 or infinity may stem from another number.
            is_rounded = dtypes.is_stored(x.dtype.name) and side < 0
            zero = np.copysign(limits.tiny if is_rounded else 0.0, relative)
            endless = np.copysign(limits.max * np.abs(relative), x) if is_rounded else x
            whole = np.where(np.isinf(x), endless, np.where(np.isnan(x), x, off))
            return np.asarray(np.where(x == 0, zero, whole), x.dtype)

    return changed


def of_equality(seed: int) -> Callable[..., Array]:
    """A function that changes the truth of the equality of numbers that are close by chance."""

    def changed(truth: Array, *numbers: Array) -> Array:
        if seed % 2 or not all(dtypes.is_float(x.dtype.name) for x in numbers):
            return truth
        a, b = numbers
        with np.errstate(all="ignore"):
            most = ALLOWED * UNITS * float(dtypes.limits(a.dtype.name).eps)
            near = (a != b) & (np.abs(a - b) <= most * np.maximum(np.abs(a), np.abs(b)))
        return truth ^ near

    return changed


def of_sum(seed: int, change: Callable[..., Array]) -> Callable[..., Array]:
    """`change` of a sum of two terms, and the infinity that another order of adding may make."""

    def changed(total: Array, *terms: Array) -> Array:
        off = change(total)
        if seed % 2 or not dtypes.is_float(total.dtype.name):
            return off
        opposite = np.isnan(total) & ~np.isnan(terms[0]) & ~np.isnan(terms[1])
        return np.where(opposite, np.asarray(np.inf, off.dtype), off)

    return changed


def finite(change: Callable[..., Array]) -> Callable[..., Array]:
    """`change` of an array whose infinities and NaN are replaced by a large number."""

    def changed(x: Array, *beside: Array) -> Array:
        if not dtypes.is_float(x.dtype.name):
            return change(x, *beside)
        large = float(dtypes.limits(x.dtype.name).max) ** 0.5  # sums of products stay finite
        return change(np.where(np.isfinite(x), x, large).astype(x.dtype), *beside)

    return changed


def _largest(x: Array) -> Array:
    """The size of the largest finite element, everywhere."""
    size = np.where(np.isfinite(x), np.abs(x), 0).max(initial=0)
    return np.full(x.shape, size, x.dtype)


def bounds(
    module: IRModule,
    inputs: Sequence[Array],
    packed: Packed,
    *,
    fast: bool = False,
    prim_func: RunPrimFunc | None = None,
) -> list[Bounds] | None:
    """The bounds of each tensor that ``main`` returns, for class ``fast`` if `fast`.

    Loop functions are called by `prim_func`.

    ``None`` if noise makes the program fail, or return another shape.
    """
    exact = leaves(evaluate(module, "main", *inputs, packed=packed, prim_func=prim_func))
    rough = noisy(module)
    runs: list[list[Array]] = []
    for seed in range(RUNS):
        change = noise(seed, fast=fast)
        functions = {
            NOISE: change,
            NOISE_BETWEEN: finite(change),
            NOISE_OF_EQUALITY: of_equality(seed),
            NOISE_OF_SUM: of_sum(seed, change),
        }
        try:
            packed_too = {**packed, **functions}
            result = evaluate(
                rough, "main", *map(change, inputs), packed=packed_too, prim_func=prim_func
            )
        except RunError:
            return None
        runs.append(leaves(result))
        if [np.shape(r) for r in runs[-1]] != [np.shape(e) for e in exact]:
            return None
    limits = [_bounds(e, others) for e, *others in zip(exact, *runs, strict=True)]
    return list(map(_finite_only, limits)) if fast else limits


def assert_within(actual: Any, expected: Sequence[Bounds], what: str) -> None:
    """Fail unless `actual` has the shapes and dtypes of the bounds, and respects them."""
    results = leaves(actual)
    assert len(results) == len(expected), f"{what}: {len(results)} results, not {len(expected)}"
    for number, (have, want) in enumerate(zip(results, expected, strict=True)):
        shown = f"{what}: result {number}"
        assert isinstance(have, np.ndarray), f"{shown} is a {type(have).__name__}"
        assert have.dtype == want.exact.dtype, f"{shown} is {have.dtype}, not {want.exact.dtype}"
        assert have.shape == want.exact.shape, f"{shown} is {have.shape}, not {want.exact.shape}"
        wrong = want.checked & ~_near(have, want)
        if wrong.any():
            at = tuple(np.argwhere(wrong)[0])
            raise AssertionError(
                f"{shown}{list(map(int, at))}: {have[at]!r}, not {want.exact[at]!r} "
                f"± {want.error[at]:.3g}; {np.count_nonzero(wrong)} of {wrong.size} are wrong"
            )


def assert_same(actual: Any, expected: Any, what: str = "") -> None:
    """Fail unless two arrays are equal; numpy's own comparison fails for NaN of bfloat16."""
    have, want = np.asarray(actual), np.asarray(expected)
    assert have.dtype == want.dtype, what
    if dtypes.is_stored(want.dtype.name):
        have, want = have.astype(np.float32), want.astype(np.float32)
    np.testing.assert_array_equal(have, want, what, strict=True)


def leaves(value: Any) -> list[Any]:
    """The values in nested tuples, in order; a shape becomes a tensor of its extents."""
    if not isinstance(value, tuple):
        return [value]
    return [v for field in value for v in leaves(field)]


def _bounds(exact: Array, runs: Sequence[Array]) -> Bounds:
    if not dtypes.is_float(exact.dtype.name):
        same = [np.asarray(r == exact) for r in runs]
        return Bounds(exact, np.zeros(exact.shape), np.logical_and.reduce(same))
    limits = dtypes.limits(exact.dtype.name)
    with np.errstate(all="ignore"):
        off = [np.abs(r.astype(np.float64) - exact) for r in runs]
        own = 8 * limits.eps * np.abs(exact, dtype=np.float64) + VANISHING * limits.tiny
        error = np.asarray(ALLOWED * np.maximum.reduce(off) + own)
    same = [np.asarray(_kind(r) == _kind(exact)) for r in runs]
    return Bounds(exact, error, np.logical_and.reduce(same))


def _finite_only(bounds_: Bounds) -> Bounds:
    if not dtypes.is_float(bounds_.exact.dtype.name):
        return bounds_
    return replace(bounds_, checked=bounds_.checked & np.isfinite(bounds_.exact))


def _near(have: Array, want: Bounds) -> Array:
    if not dtypes.is_float(want.exact.dtype.name):
        return np.asarray(have == want.exact)
    finite = np.isfinite(want.exact)
    with np.errstate(all="ignore"):
        near = np.abs(have.astype(np.float64) - want.exact) <= want.error
        pole = np.isinf(have) & (want.exact != 0) & (want.error >= np.abs(want.exact))
    return np.where(finite, near | pole, _kind(have) == _kind(want.exact))


def _kind(x: Array) -> Array:
    """0 for finite numbers, and other numbers for NaN and the infinities."""
    return np.where(np.isnan(x), 2, np.where(np.isinf(x), np.sign(x), 0))


def _noisy_sequence(seq: SeqExpr) -> SeqExpr:
    return SeqExpr(tuple(map(_noisy_block, seq.blocks)), seq.body)


def _noisy_block(block: Block) -> Block:
    products = [b.value for b in block.bindings if isinstance(b, VarBinding) and _is_product(b)]
    read = {arg for call in products if isinstance(call, Call) for arg in call.args}
    bindings = (b for old in block.bindings for b in _noisy_binding(old, old.var in read))
    return replace(block, bindings=tuple(bindings))


def _is_product(binding: Binding) -> bool:
    match binding:
        case VarBinding(value=Call(op=Op(name="matmul"))):
            return True
        case _:
            return False


def _noisy_binding(binding: Binding, is_between: bool) -> list[Binding]:
    var = binding.var
    info = var.struct_info
    if isinstance(binding, VarBinding) and isinstance(binding.value, If):
        value = binding.value
        true, false = map(_noisy_sequence, (value.true_branch, value.false_branch))
        return [VarBinding(var, replace(value, true_branch=true, false_branch=false))]
    if not (isinstance(binding, VarBinding) and isinstance(binding.value, Call)):
        return [binding]
    kind = DataflowVar if isinstance(var, DataflowVar) else Var
    exact = kind(f"{var.name}_exact", info)
    call = VarBinding(exact, binding.value)
    if isinstance(info, TensorStructInfo):
        function = NOISE_BETWEEN if is_between and _is_product(binding) else NOISE
        return [call, VarBinding(var, _changed(exact, binding.value, function))]
    if not isinstance(info, TupleStructInfo):
        return [binding]
    bindings, parts = [call], list[Expr]()
    for k, field in enumerate(info.fields):
        part = kind(f"{var.name}_exact{k}", field)
        bindings.append(VarBinding(part, TupleGetItem(exact, k)))
        parts.append(part)
        if isinstance(field, TensorStructInfo):
            rough = kind(f"{var.name}_rough{k}", field)
            bindings.append(VarBinding(rough, _changed(part, binding.value)))
            parts[k] = rough
    return [*bindings, VarBinding(var, Tuple(tuple(parts)))]


def _changed(exact: Var, call: Call, function: str = NOISE) -> Expr:
    """`exact` with noise, which is a tensor of the result of `call`."""
    if isinstance(call.op, Op) and call.op.name in EQUALITIES:
        operands = [exact, *call.args]
        return call_packed(NOISE_OF_EQUALITY, operands, [exact.struct_info], pure=True)
    name = call.op.name if isinstance(call.op, Op) and not call.op.intrinsic else ""
    if name in SUMS:
        return call_packed(NOISE_OF_SUM, [exact, *call.args], [exact.struct_info], pure=True)
    beside = call.args if name in CANCELLING else ()
    if name and is_as_accurate_as_its_largest(name):
        beside = (exact,)
    return call_packed(function, [exact, *beside], [exact.struct_info], pure=True)
