"""Constant right operands of products are packed when a program is built.

By numpy: of loops, as `prepare_constants` runs them, each shape would be compiled for its own.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relax_egraph.ir.expr import Call, Constant, Expr, Function, GlobalVar, Tuple
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.names import unused
from relax_egraph.ir.op import OPS
from relax_egraph.ir.walk import post_order_visit
from relax_egraph.lower.schedule.conv import is_convolution
from relax_egraph.lower.schedule.matmul import packable, with_panels
from relax_egraph.lower.schedule.packed import LINE, Panels
from relax_egraph.passes.infra import module_pass
from relax_egraph.passes.share_constants import share_constants
from relax_egraph.tir.stmt import PrimFunc
from relax_egraph.vm.deferred import deferred, made
from relax_egraph.vm.storage import aligned_bytes

Array: TypeAlias = npt.NDArray[Any]

Packable: TypeAlias = Mapping[str, tuple[int, Panels]]
"""By the name of a loop function: which of its parameters is packed if it is constant, and how."""


@module_pass(name="pack_constants", required=(share_constants,))
def pack_constants(module: IRModule) -> IRModule:
    """Give products their constant right operands in the order in which they read them.

        lv = R.call_tir(cls.dense, (x, w), …)       # w: a constant of shape (768, 300)
        -->
        lv = R.call_tir(cls.dense, (x, packed), …)  # packed: of shape (768 * 304,)

    `dense` is then scheduled for it; if it is also called with what is no constant, it stays, and
    a new function ``dense_packed`` is called.  A constant of several calls is packed once, when it
    is stored: what the calls get until then is `Deferred`.
    """
    functions: dict[str, BaseFunc] = dict(module.functions)
    found = {n: (f, packable(f)) for n, f in functions.items() if isinstance(f, PrimFunc)}
    known = {n: how for n, (f, how) in found.items() if how and not is_convolution(f)}
    uses, calls = Counter[str](), Counter[str]()

    def count(expr: Expr) -> None:
        if isinstance(expr, GlobalVar):
            uses[expr.name] += 1
        elif isinstance(expr, Call) and _constant(expr, known):
            assert isinstance(expr.args[0], GlobalVar)
            calls[expr.args[0].name] += 1

    for _, function in module.relax_functions():
        post_order_visit(function, count)
    callees: dict[str, GlobalVar] = {}
    taken = set(functions)
    for name, number in calls.items():
        function = module[name]
        assert isinstance(function, PrimFunc)
        new = name if uses[name] == number else unused(f"{name}_packed", taken)
        functions[new] = with_panels(function, *known[name])
        callees[name] = GlobalVar(new, functions[new].struct_info)
    packer = _Packer(known, callees)
    for name, function in module.relax_functions():
        changed = packer.visit_expr(function)
        assert isinstance(changed, Function)
        functions[name] = changed
    return replace(module, functions=functions) if calls else module


def _constant(call: Call, known: Packable) -> Constant | None:
    """What `call` hands over that can be packed."""
    match call:
        case Call(op=op, args=[GlobalVar(name=name), Tuple(fields=fields), *_]) if (
            op is OPS["call_tir"] and name in known
        ):
            operand = fields[known[name][0]]
            return operand if isinstance(operand, Constant) else None
        case _:
            return None


class _Packer(ExprMutator):
    """Hands over packed constants, to `callees` that take them."""

    def __init__(self, known: Packable, callees: Mapping[str, GlobalVar]) -> None:
        super().__init__()
        self._known, self._callees = known, callees
        self._packed: dict[tuple[int, Panels], tuple[Array, Constant]] = {}

    def visit_call(self, call: Call) -> Expr:
        constant = _constant(call, self._known)
        if constant is None:
            return super().visit_call(call)
        callee, operands, *rest = call.args
        assert isinstance(callee, GlobalVar)
        assert isinstance(operands, Tuple)
        number, panels = self._known[callee.name]
        fields = [self.visit_expr(f) for f in operands.fields]
        fields[number] = self._once(constant.data, panels)
        args = (self._callees[callee.name], Tuple(tuple(fields)), *map(self.visit_expr, rest))
        return replace(call, args=args)

    def _once(self, data: Array, panels: Panels) -> Constant:
        """`data` packed; it is kept beside the result so that its identity names no other."""
        key = (id(data), panels)
        if key not in self._packed:
            packed = deferred(panels.shape, data.dtype, partial(pack, data, panels))
            self._packed[key] = data, Constant(packed)
        return self._packed[key][1]


@module_pass(name="store_constants")
def store_constants(module: IRModule) -> IRModule:
    """Make the constants that are `Deferred`."""
    functions: dict[str, BaseFunc] = dict(module.functions)
    for name, function in module.relax_functions():
        changed = _Storing().visit_expr(function)
        assert isinstance(changed, Function)
        functions[name] = changed
    return replace(module, functions=functions)


class _Storing(ExprMutator):
    def visit_constant(self, constant: Constant) -> Expr:
        data = made(constant.data)
        return constant if data is constant.data else Constant(data)


def pack(data: Array, panels: Panels) -> Array:
    """The matrices of `data` as `panels`, aligned for vectors."""
    count, depth, columns, width = panels.count, panels.depth, panels.columns, panels.width
    packed = aligned_bytes(data.itemsize * count * depth * panels.padded).view(data.dtype)
    given = data.reshape(count, *((columns, depth) if panels.is_transposed else (depth, columns)))
    matrices = given.swapaxes(1, 2) if panels.is_transposed else given
    strips = columns // width
    full = strips * width
    places = packed.reshape(count, -1)
    for matrix, place in zip(matrices, places, strict=True):
        _fill(
            place[: full * depth].reshape(strips, depth, width),
            matrix[:, :full].reshape(depth, strips, width).swapaxes(0, 1),
        )
    last = places[:, full * depth :].reshape(count, depth, -1)
    last[:, :, : columns - full] = matrices[:, :, full:]
    last[:, :, columns - full :] = 0
    return packed.reshape(panels.shape)


def _fill(places: Array, strips: Array) -> None:
    """Copy `strips` to where they are to be.

    Columns that lie one after the other are brought to fast memory first, a line of the cache apart
    from where powers of two would have them, so that all of a row are there at once: that halves
    the time.
    """
    if strips.strides[2] <= strips.strides[1]:
        places[...] = strips
        return
    _, depth, width = strips.shape
    near = np.empty((width, depth + LINE), strips.dtype)[:, :depth]
    for place, strip in zip(places, strips, strict=True):
        near[...] = strip.T
        place[...] = near.T
