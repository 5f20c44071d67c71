"""Reads operators of TVM that are several operators here, or none.

`R.layout_transform` is a padding, reshapes and a permutation; `R.matmul` with an ``out_dtype`` has
a conversion; `R.linear` is a product and a sum; the marks of checkpoints are the value itself.
"""

import ast
from collections.abc import Callable, Mapping

from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import TABLE
from relax_egraph.ir.expr import Attr, Expr, ShapeExpr
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo
from relax_egraph.script.call_reader import CallReader
from relax_egraph.script.layout_maps import rearrangement
from relax_egraph.script.literals import read_dtype, read_literal, read_string
from relax_egraph.script.source import arguments, dotted

_METHODS = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest_neighbor"}
"""Names of methods of sampling, and ours."""

Reader = Callable[[ast.Call, StructInfo | None], Expr]


class Foreign(CallReader):
    """Reads such calls; raises `ScriptError`."""

    def readers(self) -> Mapping[str, Reader]:
        """The reader of each operator."""
        return {
            "R.linear": self._linear,
            "R.matmul": self._matmul,
            "R.layout_transform": self._layout_transform,
            "R.grad.start_checkpoint": self._mark,
            "R.grad.end_checkpoint": self._mark,
            "R.hint_on_device": self._mark,
            "R.to_vdevice": self._mark,
            "R.builtin.stop_lift_params": self._mark,
            "R.memory.ensure_zero_offset": self._mark,
            "R.TupleGetItem": self._field,
            "R.nn.prelu": self._prelu,
            "R.image.grid_sample": self._grid_sample,
            "R.wrap_param": self._wrapped,
            "R.emit_with_ty": self._emitted,
            "R.Call": self._emitted,
        }

    def _apply(self, node: ast.Call, name: str, *args: Expr, **attrs: Attr) -> Expr:
        return self._operators.apply(node, OPS[name], list(args), attrs)

    def _linear(self, node: ast.Call, _: StructInfo | None) -> Expr:
        """``R.linear(data, weight, bias)``: a transposition, a product and perhaps a sum."""
        by_name = arguments(self._source, node, ("data", "weight", "bias"))
        if len(node.args) + len(node.keywords) < 2 or "weight" not in by_name:
            raise self._source.error(node, "R.linear takes data, a weight, and perhaps a bias")
        data, weight = self._leaf(by_name["data"]), self._leaf(by_name["weight"])
        turned = self._scope.emit(self._apply(node, "permute_dims", weight))
        product = self._apply(node, "matmul", data, turned)
        if "bias" not in by_name:
            return product
        bias = self._leaf(by_name["bias"])
        return self._apply(node, "add", self._scope.emit(product), bias)

    def _matmul(self, node: ast.Call, _: StructInfo | None) -> Expr:
        """``R.matmul(x, y, out_dtype)``: operands are widened first, a result narrowed after."""
        by_name = arguments(self._source, node, ("x", "y", "out_dtype"))
        wanted = by_name.get("out_dtype")
        plain = ast.copy_location(ast.Call(node.func, node.args[:2], []), node)
        plain.keywords = [k for k in node.keywords if k.arg != "out_dtype"]
        void = isinstance(wanted, ast.Constant) and wanted.value in ("", "void", None)
        if wanted is None or void:
            return self._operators.call(plain, OPS["matmul"])
        dtype = read_dtype(self._source, wanted)
        operands = [self._leaf(by_name[k]) for k in ("x", "y") if k in by_name]
        infos = [o.struct_info for o in operands]
        dtypes = {i.dtype for i in infos if isinstance(i, TensorStructInfo)}
        if len(operands) != 2 or dtypes == {dtype}:
            return self._operators.call(plain, OPS["matmul"])
        if any(d and TABLE[d].bits > TABLE[dtype].bits for d in dtypes):
            product = self._scope.emit(self._apply(node, "matmul", *operands))
            return self._apply(node, "astype", product, dtype=dtype)
        widened = [
            self._scope.emit(self._apply(node, "astype", operand, dtype=dtype))
            for operand in operands
        ]
        return self._apply(node, "matmul", *widened)

    def _layout_transform(self, node: ast.Call, _: StructInfo | None) -> Expr:
        names = ("x", "index_map", "pad_value", "axis_separators", "input_axis_separators")
        by_name = arguments(self._source, node, names)
        if not {"x", "index_map"} <= by_name.keys():
            raise self._source.error(node, "R.layout_transform takes a tensor and an index_map")
        value, written = self._leaf(by_name["x"]), by_name["index_map"]
        if isinstance(written, ast.Call) and written.args:
            written = written.args[0]  # T.index_map(lambda …)
        info = value.struct_info
        known = info.dims if isinstance(info, TensorStructInfo) else None
        if known is None:
            message = f"R.layout_transform of {info}: needs a tensor of known shape"
            raise self._source.error(node, message)
        steps = rearrangement(self._source, written, known)
        steps_taken: list[Callable[[Expr], Expr]] = []
        if steps.padded != known:
            added = [dims.sub(p, e) for e, p in zip(known, steps.padded, strict=True)]
            widths = [w for d in added if isinstance(d, int) for w in (0, d)]
            if len(widths) != 2 * len(known):
                message = f"R.layout_transform of {info}: pads an axis of unknown extent"
                raise self._source.error(node, message)
            padding = self._padding(by_name.get("pad_value"))
            steps_taken.append(
                lambda x: self._apply(node, "nn.pad", x, pad_width=tuple(widths), pad_value=padding)
            )
        if steps.split != steps.padded:
            split = ShapeExpr(steps.split)
            steps_taken.append(lambda x: self._apply(node, "reshape", x, split))
        if steps.axes != tuple(range(len(steps.axes))):
            steps_taken.append(lambda x: self._apply(node, "permute_dims", x, axes=steps.axes))
        if steps.shape != tuple(steps.split[a] for a in steps.axes):
            fused = ShapeExpr(steps.shape)
            steps_taken.append(lambda x: self._apply(node, "reshape", x, fused))
        for number, step in enumerate(steps_taken):
            value = step(self._scope.emit(value) if number else value)
        return value

    def _padding(self, node: ast.expr | None) -> float:
        value = 0.0 if node is None else read_literal(self._source, node)
        return float(value or 0)

    def _mark(self, node: ast.Call, _: StructInfo | None) -> Expr:
        written = node.args[0] if node.args else next((k.value for k in node.keywords), None)
        if written is None:
            raise self._source.error(node, f"{dotted(node.func)} takes a tensor")
        return self._leaf(written)

    def _field(self, node: ast.Call, _: StructInfo | None) -> Expr:
        """``R.TupleGetItem(t, 0)``."""
        by_name = arguments(self._source, node, ("tuple_value", "index"))
        if len(by_name) < 2:
            raise self._source.error(node, "R.TupleGetItem takes a tuple and an index")
        item = ast.Subscript(by_name["tuple_value"], by_name["index"], ast.Load())
        return self._value(ast.copy_location(item, node))

    def _grid_sample(self, node: ast.Call, _: StructInfo | None) -> Expr:
        """``R.image.grid_sample(data, grid, method, layout, padding_mode, align_corners)``.

        With a `layout`, or a method in TVM's words, the coordinates of points are axis 1 of the
        grid, as there; else they are its last axis.
        """
        names = ("data", "grid", "method", "layout", "padding_mode", "align_corners")
        by_name = arguments(self._source, node, names)
        operands = [self._leaf(by_name[k]) for k in names[:2] if k in by_name]
        attrs = {k: read_literal(self._source, v) for k, v in by_name.items() if k in names[2:]}
        if attrs.pop("layout", "NCHW") not in ("NCHW", "NCDHW"):
            message = "R.image.grid_sample reads images of layout NCHW, volumes of NCDHW"
            raise self._source.error(by_name["layout"], message, "use R.permute_dims")
        method = attrs.get("method")
        if ("layout" in by_name or method in _METHODS) and len(operands) == 2:
            info = operands[0].struct_info
            rank = info.ndim if isinstance(info, TensorStructInfo) and info.ndim > 0 else 4
            axes = (0, *range(2, rank), 1)
            turned = self._apply(node, "permute_dims", operands[1], axes=axes)
            operands[1] = self._scope.emit(turned)
        if method is not None:
            attrs["method"] = _METHODS.get(method, method)
        return self._apply(node, "image.grid_sample", *operands, **attrs)

    def _wrapped(self, node: ast.Call, _: StructInfo | None) -> Expr:
        """``R.wrap_param(data, dtype)``: a conversion."""
        by_name = arguments(self._source, node, ("data", "dtype"))
        if "data" not in by_name:
            raise self._source.error(node, "R.wrap_param takes a tensor and a dtype")
        written = by_name.get("dtype")
        dtype = "float32" if written is None else read_dtype(self._source, written)
        return self._apply(node, "astype", self._leaf(by_name["data"]), dtype=dtype)

    def _emitted(self, node: ast.Call, declared: StructInfo | None) -> Expr:
        """``R.emit_with_ty("relax.exp", (x,), (info,))``: the call of the operator itself."""
        match node.args:
            case [operator, ast.Tuple(elts=operands) | ast.List(elts=operands), *infos]:
                pass
            case _:
                name = dotted(node.func)
                raise self._source.error(node, f"{name} takes an operator and its operands")
        if isinstance(operator, ast.Call) and operator.args:
            operator = operator.args[0]  # tvm.ir.Op.get("relax.exp")
        name = read_string(self._source, operator, "the operator").removeprefix("relax.")
        callee = ast.parse(f"R.{name}", mode="eval").body
        claims = [*infos, *(k.value for k in node.keywords)]
        if not name.startswith("call_"):
            claims = []
        call = ast.Call(callee, operands, [ast.keyword("out_sinfo", c) for c in claims])
        for part in (callee, *call.keywords):
            ast.copy_location(part, node)
        return self._value(ast.copy_location(call, node))

    def _prelu(self, node: ast.Call, _: StructInfo | None) -> Expr:
        """``R.nn.prelu(data, alpha, axis)``, whose one slope may be that of all channels."""
        call = self._operators.call
        by_name = arguments(self._source, node, ("data", "alpha", "axis"))
        if not {"data", "alpha"} <= by_name.keys():
            return call(node, OPS["nn.prelu"])
        data, alpha = self._leaf(by_name["data"]), self._leaf(by_name["alpha"])
        axis = read_literal(self._source, by_name["axis"]) if "axis" in by_name else 1
        info, slopes = data.struct_info, alpha.struct_info
        extents = info.dims if isinstance(info, TensorStructInfo) else None
        one = isinstance(slopes, TensorStructInfo) and slopes.dims == (1,)
        if one and extents and -len(extents) <= axis < len(extents) and extents[axis] != 1:
            wide = ShapeExpr((extents[axis],))
            alpha = self._scope.emit(self._apply(node, "broadcast_to", alpha, wide))
        return self._apply(node, "nn.prelu", data, alpha, axis=axis)
