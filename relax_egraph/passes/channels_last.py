"""Layout of images: channels last (``NHWC``) between convolutions.

Convolution kernels read and write channels as vectors.  For an operator, another layout is another
attribute; between operators, it is a copy.  So the layout is chosen for a block as a whole.
"""

from collections.abc import Sequence
from typing import TypeGuard

from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import (
    Attrs,
    Binding,
    Call,
    DataflowBlock,
    DataflowVar,
    Expr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import OPS, Op, complete_attrs
from relax_egraph.ir.refusals import Refusals
from relax_egraph.ir.struct_info import Shape, TensorStructInfo
from relax_egraph.ir.walk import children
from relax_egraph.passes.dataflow_block_pass import dataflowblock_pass
from relax_egraph.passes.infra import PassContext

CONVOLUTIONS_PER_MOVE = 4
"""The convolutions that pay for one copy of an image from one layout to the other."""

_POOLS = frozenset({"nn.max_pool2d", "nn.avg_pool2d", "nn.adaptive_avg_pool2d"})
_TO_LAST, _BACK = (0, 2, 3, 1), (0, 3, 1, 2)
_CHANNELS, _LAST = (1, -3), 3


@dataflowblock_pass(name="channels_last", opt_level=1)
def channels_last(block: DataflowBlock, module: IRModule, _: PassContext) -> DataflowBlock:
    """Change convolutions in ``NCHW``, and operators on their results, to ``NHWC``.

        y = R.nn.conv2d(x, w, padding=[1])
        z = R.nn.relu(y)
        -->
        y = R.nn.conv2d(x, w, padding=[1], out_layout="NHWC")
        z1 = R.nn.relu(y)
        z = R.permute_dims(z1, axes=[0, 3, 1, 2])

    Values that are needed in the old layout are transposed back; a block that would need too many
    transposes stays unchanged.
    """
    writer = _Writer(_read_whole(block), Refusals(module))
    for binding in block.bindings:
        writer.add(binding)
    if writer.convolutions < max(1, CONVOLUTIONS_PER_MOVE * writer.moves):
        return block
    return DataflowBlock(tuple(writer.bindings))


def _read_whole(block: DataflowBlock) -> frozenset[Var]:
    """The variables with uses other than as the first field of a tuple."""
    whole = {b.var for b in block.bindings if not isinstance(b.var, DataflowVar)}
    for binding in block.bindings:
        match binding.value:
            case TupleGetItem(tuple_value=Var(), index=0):
                pass
            case value:
                whole.update(_variables(value))
    return frozenset(whole)


def _variables(value: Expr) -> list[Var]:
    if isinstance(value, Var):
        return [value]
    return [v for child in children(value) for v in _variables(child)]


class _Writer:
    """Rewrites a block: `last` maps variables to their values with channels last.

    `moves` counts the images that are copied to another layout.
    """

    def __init__(self, read_whole: frozenset[Var], refusals: Refusals) -> None:
        self.bindings: list[Binding] = []
        self.last: dict[Var, Var] = {}
        self.convolutions = self.moves = 0
        self._read_whole = read_whole
        self._refusals = refusals
        self._there: set[Var] = set()

    def add(self, binding: Binding) -> None:
        """Emit `binding`, with channels last if that is possible."""
        last = self._last(binding) if self._moves(binding) else None
        if last is None:
            for var in _variables(binding.value):
                self._back(var)
            self.bindings.append(binding)
            return
        self.last[binding.var] = self._bound(binding.var.name, last)
        if not isinstance(binding.var, DataflowVar):
            self._back(binding.var)

    def _moves(self, binding: Binding) -> TypeGuard[VarBinding]:
        """Whether `binding` may change its layout, which messages about shapes must not show."""
        if not isinstance(binding, VarBinding):
            return False
        is_conv = isinstance(binding.value, Call) and binding.value.op is OPS["nn.conv2d"]
        reads = is_conv or not self.last.keys().isdisjoint(_variables(binding.value))
        return reads and not self._refusals.binding(binding)

    def _bound(self, name: str, value: Expr) -> Var:
        var = DataflowVar(name, value.struct_info)
        self.bindings.append(VarBinding(var, value))
        return var

    def _back(self, var: Var) -> None:
        """Define `var` in the program's layout, by a transpose of its value with channels last."""
        last = self.last.get(var)
        if last is not None and var not in self._there:
            self._there.add(var)
            self.moves += not _is_line(last)
            self.bindings.append(VarBinding(var, call("permute_dims", last, axes=_BACK)))

    def _last(self, binding: VarBinding) -> Expr | None:
        """The value of `binding` with channels last; ``None`` if there is none."""
        match binding.value:
            case TupleGetItem(tuple_value=Var() as whole, index=index) if whole in self.last:
                return TupleGetItem(self.last[whole], index)
            case Call(op=Op(elementwise=True) as op, args=args, attrs=attrs) as mapped:
                return self._map(op, args, attrs, _shape(mapped))
            case Call(op=Op(name="concat"), args=(Tuple(fields=fields),), attrs=attrs):
                parts = [self.last[f] for f in fields if isinstance(f, Var) and f in self.last]
                is_whole = len(parts) == len(fields) and attrs.get("axis") in _CHANNELS
                return call("concat", Tuple(tuple(parts)), axis=_LAST) if is_whole else None
            case Call(op=Op() as op, args=(Var() as data, *others), attrs=attrs):
                return self._windowed(op, data, others, complete_attrs(op, attrs), binding.var)
            case _:
                return None

    def _windowed(
        self, op: Op, data: Var, others: Sequence[Expr], attrs: Attrs, var: Var
    ) -> Expr | None:
        last = self.last.get(data)
        if op.name == "nn.conv2d" and attrs["data_layout"] == "NCHW" and not attrs["out_layout"]:
            self.convolutions += 1
            for other in others:
                for read in _variables(other):
                    self._back(read)
            if last is None:
                return call(op.name, data, *others, **{**attrs, "out_layout": "NHWC"})
            return call(op.name, last, *others, **{**attrs, "data_layout": "NHWC"})
        if last is None:
            return None
        if op.name in _POOLS and attrs["layout"] == "NCHW" and not attrs["out_layout"]:
            return call(op.name, last, **{**attrs, "layout": "NHWC"})
        is_norm = op.name == "nn.batch_norm" and attrs["axis"] in _CHANNELS
        if is_norm and var not in self._read_whole:
            return call(op.name, last, *others, **{**attrs, "axis": _LAST})
        return None

    def _map(self, op: Op, args: Sequence[Expr], attrs: Attrs, shape: Shape | None) -> Expr | None:
        """An elementwise operator, if its result has the shape of an image among `args`."""
        images = [a for a in args if isinstance(a, Var) and a in self.last]
        if shape is None or not any(_same(_shape(a), shape) for a in images):
            return None
        tensors = [a for a in args if isinstance(a.struct_info, TensorStructInfo)]
        if any(_shape(a) is None for a in tensors):
            return None
        return call(op.name, *map(self._operand, args), **attrs)

    def _operand(self, operand: Expr) -> Expr:
        """`operand` with axes that broadcast to the image with channels last."""
        if isinstance(operand, Var) and operand in self.last:
            return self.last[operand]
        shape = _shape(operand)
        if shape is None or all(d == 1 for d in shape):
            return operand
        if len(shape) < 3:  # along rows and columns only
            return self._bound("v", call("expand_dims", operand, axis=(len(shape),)))
        self.moves += len(shape) == 4 and not _is_line(operand)
        axes = _TO_LAST if len(shape) == 4 else (1, 2, 0)
        return self._bound("v", call("permute_dims", operand, axes=axes))


def _shape(value: Expr) -> Shape | None:
    info = value.struct_info
    return info.dims if isinstance(info, TensorStructInfo) else None


def _same(a: Shape | None, b: Shape) -> bool:
    return a is not None and len(a) == len(b) and all(map(dims.equal, a, b))


def _is_line(value: Expr) -> bool:
    """Whether all extents but one are 1, so that a transpose moves no element."""
    shape = _shape(value)
    return shape is not None and sum(d != 1 for d in shape[1:]) <= 1
