"""Replaces operators by calls of loop functions, packed functions and builtins."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder, call_packed
from relax_egraph.ir.expr import (
    Attr,
    Attrs,
    Call,
    Expr,
    Function,
    PrimValue,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutation import writes_in_place
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import Op, complete_attrs, infer
from relax_egraph.ir.outputs import infos_of
from relax_egraph.ir.run_time import packed_call, run_time_call
from relax_egraph.ir.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relax_egraph.lower.legalize import BUILTINS, CHECKS, CHOICES, VIEWS, Legalize, loops_of
from relax_egraph.lower.legalize.index import are_inside
from relax_egraph.passes.infra import module_pass
from relax_egraph.tir.call_te import call_te


@module_pass(name="legalize_ops")
def legalize_ops(module: IRModule) -> IRModule:
    """`module` with every operator outside primitive functions replaced.

    * ``R.call_tir`` of a loop function, if shapes and dtypes are known;
    * ``vm.builtin.reshape`` for views; copies if the module writes tensors in place;
    * ``vm.builtin.check_indices`` for checks of indices, after a loop function that computes them;
    * ``vm.builtin.check_elements`` before loops that select an element, if there may be none;
    * ``vm.builtin.shape_of`` and ``vm.builtin.tensor_to_shape`` for shapes,
      ``vm.builtin.prim_less_equal`` for dimensions;
    * ``R.call_pure_packed`` or ``R.call_dps_packed`` of the packed function of a user's operator;
    * ``relax.run.<operator>`` if its conditions are known only at run time.
    """
    bb = BlockBuilder(module)
    writes = any(writes_in_place(f) for _, f in module.relax_functions())
    rewritten: dict[str, BaseFunc] = {}
    for name, function in module.relax_functions():
        if not function.attrs.get("primitive"):
            new = _Legalizer(bb, writes).visit_expr(function)
            assert isinstance(new, Function)
            rewritten[name] = new
    return IRModule({name: rewritten.get(name, f) for name, f in bb.get().functions.items()})


class _Legalizer(ExprMutator):
    """Replaces operators; adds loop functions to the module of `bb`.

    If tensors are written in place (`writes`), no tensor is a view of another.
    """

    def __init__(self, bb: BlockBuilder, writes: bool) -> None:
        super().__init__()
        self._bb = bb
        self._writes = writes
        self._calls: dict[Hashable, Call] = {}

    def visit_call(self, call: Call) -> Expr:
        visited = super().visit_call(call)
        if not isinstance(visited, Call) or not isinstance(visited.op, Op) or visited.op.intrinsic:
            return visited
        return replace(self._legalize(visited, visited.op, infer(visited)), span=visited.span)

    def _legalize(self, call: Call, op: Op, info: StructInfo) -> Call:
        args = tuple(_with_known_shape(a) for a in call.args)
        if op.name in BUILTINS:
            return call_packed(f"vm.builtin.{op.name}", args, (info,), pure=True)
        viewed = op.name in VIEWS and not self._writes
        if viewed and op.name == "reshape":  # the builtin checks the number of elements
            return call_packed("vm.builtin.reshape", args, (info,), pure=True)
        packed = op.own.packed if op.own else None
        if packed and (not packed.into_results or all(map(_has_size, infos_of(info)))):
            return packed_call(packed, op, args, call.attrs, info)
        if not all(map(_is_known, args)):
            return run_time_call(op, args, call.attrs, info)
        if op.name in CHECKS:
            return self._check_indices(args, complete_attrs(op, call.attrs), info)
        if viewed and _is_view(args[0], info):
            return _view(args[0], info)
        if op.name in CHOICES:
            args = (self._with_an_element(op, args[0], call.attrs.get("axis")),)
        function = loops_of(op)
        is_copied = self._writes or op.name not in VIEWS
        if function is not None and is_copied:
            try:
                return self._call_of_loops(op, function, args, complete_attrs(op, call.attrs))
            except NotLowerable:
                pass  # its conditions are known only at run time
        return run_time_call(op, args, call.attrs, info)

    def _check_indices(self, args: Sequence[Expr], attrs: Attrs, info: StructInfo) -> Call:
        """A check by the machine of indices that a kernel has tested."""
        axes, operator, from_end = attrs["axes"], attrs["operator"], attrs["from_end"]
        assert isinstance(axes, tuple)
        assert isinstance(operator, str)
        operands = ("indices", "shape")
        test = call_te(self._bb, are_inside, *args, operands=operands, axes=axes, from_end=from_end)
        inside = self.emit(test, "inside")
        indices, shape = args
        flags = (StringImm(operator), PrimValue(int(bool(from_end))), *map(PrimValue, axes))
        passed = (indices, inside, shape, *flags)
        return call_packed("vm.builtin.check_indices", passed, (info,), pure=True)

    def _with_an_element(self, op: Op, x: Expr, axis: object) -> Expr:
        """`x`, checked by the machine to have an element along `axis`."""
        info = x.struct_info
        assert isinstance(info, TensorStructInfo)
        assert info.dims is not None
        places = [axis] if isinstance(axis, int) else []
        if all(dims.prove_ge(d, 1) for d in [info.dims[p] for p in places] or info.dims):
            return x
        operands = (x, StringImm(str(op)), *map(PrimValue, places))
        checked = call_packed("vm.builtin.check_elements", operands, (info,), pure=True)
        return self.emit(checked, "chosen")

    def _call_of_loops(
        self, op: Op, function: Legalize, args: tuple[Expr, ...], attrs: Attrs
    ) -> Call:
        """``R.call_tir`` of the loops of `op`, which operands of the same types share.

        Elementwise loops read once what is passed twice: two streams of one array are slower.
        """
        passed, places = _each_once(args) if op.elementwise else (args, tuple(range(len(args))))
        key = (op, places, tuple(map(_type, passed)), repr(sorted(attrs.items())))
        cached = self._calls.get(key)
        if cached is None:
            names = [op.operands[places.index(k)].name for k in range(len(passed))]
            loops = partial(_at_places, function, places)
            name = function_name(op)
            call = call_te(self._bb, loops, *passed, name=name, operands=names, **attrs)
            return self._calls.setdefault(key, call)
        callee, _, *symbols = cached.args
        return replace(cached, args=(callee, Tuple(tuple(_tensors(passed))), *symbols))


def _each_once(args: Sequence[Expr]) -> tuple[tuple[Expr, ...], tuple[int, ...]]:
    """The distinct `args`, and the place of each of the `args` among them."""
    distinct: list[Expr] = []
    places: list[int] = []
    for arg in args:
        place = next((k for k, known in enumerate(distinct) if known is arg), len(distinct))
        places.append(place)
        if place == len(distinct):
            distinct.append(arg)
    return tuple(distinct), tuple(places)


def _at_places(function: Legalize, places: Sequence[int], *operands: Any, **attrs: Attr) -> Any:
    """`function` of the operands at these `places`."""
    return function(*(operands[place] for place in places), **attrs)


def function_name(op: Op) -> str:
    """The name of the loop function of `op`: ``relu`` for ``R.nn.relu``."""
    return op.name.rpartition(".")[2]


def _type(arg: Expr) -> Hashable:
    """The key of an operand for sharing loops: the struct info of a tensor."""
    match arg:
        case Tuple(fields=fields):
            return tuple(map(_type, fields))
        case PrimValue(value=value, dtype=dtype):
            return (repr(value), dtype)  # 0.0 is not -0.0
        case ShapeExpr():
            return arg
        case _:
            return arg.struct_info


def _tensors(args: Iterable[Expr]) -> Iterator[Expr]:
    """The tensors among `args`, and in tuples of them, in order."""
    for arg in args:
        if isinstance(arg, Tuple):
            yield from _tensors(arg.fields)
        elif not isinstance(arg, ShapeExpr | PrimValue):
            yield arg


def _with_known_shape(arg: Expr) -> Expr:
    """`arg` with known values in place of variables.

    A variable with a known shape becomes its dimensions, a tuple variable the tuple of its fields,
    and a Python number with a known value that number.
    """
    match arg.struct_info:
        case ShapeStructInfo(values=values) if values is not None:
            return ShapeExpr(values)
        case PrimStructInfo(value=value, dtype=dtype) if value is not None:
            return PrimValue(value, dtype)
        case TupleStructInfo(fields=fields) if isinstance(arg, Var):
            return Tuple(tuple(TupleGetItem(arg, k) for k in range(len(fields))))
        case _:
            return arg


def _is_known(arg: Expr) -> bool:
    info = arg.struct_info
    if isinstance(info, TensorStructInfo):
        return _has_size(info)
    if isinstance(arg, Tuple):
        return all(map(_is_known, arg.fields))
    return isinstance(arg, ShapeExpr | PrimValue)


def _has_size(info: StructInfo) -> bool:
    """Whether a result can be allocated before it is computed."""
    return isinstance(info, TensorStructInfo) and None not in (info.dims, info.dtype)


def _is_view(x: Expr, info: StructInfo) -> bool:
    """Whether the result is proven to have as many elements as `x`."""
    have, want = x.struct_info, info
    if not isinstance(have, TensorStructInfo) or not isinstance(want, TensorStructInfo):
        return False
    if have.dims is None or want.dims is None:
        return False
    return dims.equal(dims.product(have.dims), dims.product(want.dims))


def _view(x: Expr, info: StructInfo) -> Call:
    assert isinstance(info, TensorStructInfo)
    assert info.dims is not None
    return call_packed("vm.builtin.reshape", (x, ShapeExpr(info.dims)), (info,), pure=True)
