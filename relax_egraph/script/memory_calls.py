"""Reads operators on memory: views of tensors, storage, and tensors in it."""

import ast
from collections.abc import Callable, Mapping

from relax_egraph.ir import dims
from relax_egraph.ir.expr import Attr, Expr, PrimValue, ShapeExpr, StringImm, Tuple, VarBinding
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo
from relax_egraph.script.call_reader import CallReader
from relax_egraph.script.literals import read_dtype
from relax_egraph.script.source import arguments, dotted

Reader = Callable[[ast.Call, StructInfo | None], Expr]


class MemoryCalls(CallReader):
    """Reads such calls; raises `ScriptError`."""

    def readers(self) -> Mapping[str, Reader]:
        """The reader of each operator."""
        return {
            "R.memory.view": self._view,
            "R.dtype": self._dtype,
            "R.builtin.alloc_tensor": self._alloc_tensor,
            "R.memory.alloc_storage": self._alloc_storage,
            "R.memory.alloc_tensor": self._tensor_in_storage,
            "R.memory.kill_tensor": self._kill,
            "R.memory.kill_storage": self._kill,
            "R.vm.call_tir_dyn": self._call_dynamic,
        }

    def _apply(self, node: ast.Call, name: str, *args: Expr, **attrs: Attr) -> Expr:
        return self._operators.apply(node, OPS[name], list(args), attrs)

    def _view(self, node: ast.Call, _: StructInfo | None) -> Expr:
        """``R.memory.view(data, shape, dtype, offset)``: a reshape, or `R.reinterpret`."""
        by_name = arguments(self._source, node, ("data", "shape", "dtype", "relative_byte_offset"))
        if "data" not in by_name:
            raise self._source.error(node, "R.memory.view takes a tensor")
        value = self._leaf(by_name["data"])
        info = value.struct_info
        own = info.dtype if isinstance(info, TensorStructInfo) else None
        wanted, shape, written = (
            _given(by_name.get(k)) for k in ("dtype", "shape", "relative_byte_offset")
        )
        dtype = own if wanted is None else self._dtype_of(wanted)
        offset = None if written is None else self._operators.host_number(written)
        if dtype == own and offset in (None, PrimValue(0)):
            if shape is None:
                return value
            extents = self._leaf(shape)
            if self._is_filled(info, extents):
                return self._apply(node, "reshape", value, extents)
        elif shape is None:
            extents = self._scope.emit(self._apply(node, "shape_of", value))
        else:
            extents = self._leaf(shape)
        args = [value, extents] if offset is None else [value, extents, offset]
        return self._apply(node, "reinterpret", *args, dtype=None if dtype == own else dtype)

    def _is_filled(self, info: StructInfo, shape: Expr) -> bool:
        """Whether a view may have as many elements as the tensor."""
        extents = shape.values if isinstance(shape, ShapeExpr) else None
        if extents is None or not isinstance(info, TensorStructInfo) or info.dims is None:
            return True
        return not dims.distinct(dims.product(extents), dims.product(info.dims))

    def _dtype_of(self, node: ast.expr) -> str:
        """``"float32"``, ``R.dtype("float32")``, or a variable with that value."""
        if isinstance(node, ast.Name):
            for binding in reversed(self._scope.bindings):
                match binding:
                    case VarBinding(var=var, value=StringImm(value=dtype)) if var.name == node.id:
                        return dtype
                    case _:
                        pass
        match node:
            case ast.Call(func=func, args=[inner]) if dotted(func) == "R.dtype":
                return read_dtype(self._source, inner)
            case _:
                return read_dtype(self._source, node)

    def _dtype(self, node: ast.Call, _: StructInfo | None) -> Expr:
        """``R.dtype("float32")``, a string here."""
        by_name = arguments(self._source, node, ("dtype",))
        if "dtype" not in by_name:
            raise self._source.error(node, "R.dtype takes a dtype")
        return StringImm(read_dtype(self._source, by_name["dtype"]))

    def _alloc_tensor(self, node: ast.Call, _: StructInfo | None) -> Expr:
        """``R.builtin.alloc_tensor(shape, dtype, runtime_device_index, storage_scope)``."""
        names = ("shape", "dtype", "runtime_device_index", "storage_scope")
        by_name = arguments(self._source, node, names)
        args = [self._leaf(by_name[k]) for k in names[:2] if k in by_name]
        return self._apply(node, "builtin.alloc_tensor", *args)

    def _alloc_storage(self, node: ast.Call, _: StructInfo | None) -> Expr:
        """``R.memory.alloc_storage(size)``; TVM's size is a shape of one number of bytes."""
        names = ("size", "virtual_device_index", "storage_scope", "dtype")
        renamed = [
            ast.keyword(names[1], k.value) if k.arg == "runtime_device_index" else k
            for k in node.keywords
        ]
        call = ast.copy_location(ast.Call(node.func, node.args, renamed), node)
        by_name = arguments(self._source, call, names)
        size = by_name.get("size")
        if isinstance(size, ast.Tuple | ast.List):
            args: list[Expr] = [ShapeExpr(self._scope.annotations.shape(size))]
        else:
            args = [] if size is None else [self._leaf(size)]
        if args and isinstance(args[0], ShapeExpr) and len(args[0].values) == 1:
            args = [PrimValue(args[0].values[0])]
        return self._apply(node, "memory.alloc_storage", *args)

    def _call_dynamic(self, node: ast.Call, _: StructInfo | None) -> Expr:
        """``R.vm.call_tir_dyn(cls.f, (x, out, R.shape([n])))``: ``cls.f(x, out, n)``."""
        match node.args:
            case [function, ast.Tuple(elts=[*operands, ast.Call(args=[ast.List(elts=sizes)])])]:
                call = ast.Call(function, [*operands, *sizes], node.keywords)
                return self._value(ast.copy_location(call, node))
            case [function, ast.Tuple(elts=operands)]:
                call = ast.Call(function, operands, node.keywords)
                return self._value(ast.copy_location(call, node))
            case _:
                message = "R.vm.call_tir_dyn takes a function and a tuple of operands"
                raise self._source.error(node, message, "write cls.f(x, out, n)")

    def _kill(self, node: ast.Call, _: StructInfo | None) -> Expr:
        """``R.memory.kill_tensor(x)``: nothing, as memory is let go after its last use anyway."""
        if len(node.args) + len(node.keywords) != 1:
            raise self._source.error(node, f"{dotted(node.func)} takes one value")
        return Tuple(())

    def _tensor_in_storage(self, node: ast.Call, _: StructInfo | None) -> Expr:
        """``R.memory.alloc_tensor(storage, offset, shape, dtype, runtime_device_index)``."""
        names = ("storage", "offset", "shape", "dtype", "runtime_device_index")
        by_name = arguments(self._source, node, names)
        args = [self._leaf(by_name[k]) for k in names[:4] if k in by_name]
        return self._apply(node, "memory.alloc_tensor", *args)


def _given(node: ast.expr | None) -> ast.expr | None:
    """An argument that is not ``None``, which TVM prints as ``R.tuple()`` or ``R.null_value()``."""
    match node:
        case ast.Constant(value=None):
            return None
        case ast.Call(func=func, args=[]) if dotted(func) in ("R.tuple", "R.null_value"):
            return None
        case _:
            return node
