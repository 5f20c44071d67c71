"""Prints loop functions as the text that `parse` reads back, node for node."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager

from relax_egraph.ir import dims
from relax_egraph.script.layout import WIDTH, Names, call_lines, def_lines
from relax_egraph.script.literals import attrs_text, quoted
from relax_egraph.script.tir_expression_printer import TirExpressionPrinter
from relax_egraph.tir.expr import HANDLE, Buffer, TirExpr, TirVar
from relax_egraph.tir.stmt import (
    BlockAxis,
    For,
    IfThenElse,
    LoopKind,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    TensorIntrinsic,
    TirBlock,
)

INDENT = "    "
_LOOPS: dict[LoopKind, str] = {
    "serial": "T.serial",
    "parallel": "T.parallel",
    "vectorized": "T.vectorized",
    "unrolled": "T.unroll",
}


def prim_func_lines(name: str, function: PrimFunc, indent: str) -> list[str]:
    """The lines of `function` under `name`."""
    return _PrimFuncPrinter(function).lines(name, indent)


class _PrimFuncPrinter:
    """Prints one function.

    `_extents` are the extents of the open loops: a block axis of the same extent is printed by
    ``T.axis.remap``.
    """

    def __init__(self, function: PrimFunc) -> None:
        self._function = function
        self._names = Names(dict.fromkeys((*function.symbols, *function.scalars)))
        self._expressions = TirExpressionPrinter()
        self._extents: dict[TirVar, TirExpr] = {}

    def lines(self, name: str, indent: str) -> list[str]:
        """The whole function."""
        function, inner = self._function, indent + INDENT
        attrs = dict(function.attrs)
        private = attrs.get("private") is True
        if private:
            del attrs["private"]
        if function.num_outputs != 1:
            attrs = {"num_outputs": function.num_outputs, **attrs}
        params = [f"{self._buffer(b)}: {_signature(b)}" for b in function.params]
        params += [f"{scalar}: T.int64" for scalar in function.scalars]
        body = self._allocs(function.allocs, inner) + self._statement(function.body, inner)
        strays = self._expressions.symbols - {*function.symbols}
        declared = [s for s in (*function.symbols, *sorted(strays)) if s not in function.scalars]
        return [
            f"{indent}@T.prim_func(private=True)" if private else f"{indent}@T.prim_func",
            *def_lines(indent, f"def {name}(", params, "):"),
            *(f"{inner}{symbol} = T.int64()" for symbol in declared),
            *([f"{inner}T.func_attr({attrs_text(attrs)})"] if attrs else []),
            *body,
        ]

    def _allocs(self, buffers: Iterable[Buffer], indent: str) -> list[str]:
        lines: list[str] = []
        for buffer in buffers:
            scope = "" if buffer.scope == "global" else f', scope="{buffer.scope}"'
            shape = _shape([dims.text(d) for d in buffer.shape])
            self._expressions.symbols.update(s for d in buffer.shape for s in dims.symbols(d))
            name = self._buffer(buffer)
            lines.append(f'{indent}{name} = T.alloc_buffer({shape}, "{buffer.dtype}"{scope})')
        return lines

    def _buffer(self, buffer: Buffer) -> str:
        """Name a buffer, uniquely in the function."""
        return self._expressions.name(buffer, self._names.take(buffer.name))

    @contextmanager
    def _variables(self, variables: Iterable[TirVar]) -> Generator[list[str]]:
        """Name variables inside; afterwards the names are free for others."""
        named = [self._expressions.name(v, self._names.take(v.name)) for v in variables]
        yield named
        for name in named:
            self._names.free(name)

    # --- statements -------------------------------------------------------------------

    def _statement(self, stmt: Stmt, indent: str) -> list[str]:
        text = self._expressions.text
        match stmt:
            case Store(buffer=buffer, indices=indices, value=value):
                target = self._expressions.element(buffer, indices)
                whole = f"{indent}{target} = {text(value)}"
                if len(whole) <= WIDTH:
                    return [whole]
                first, *rest = self._expressions.opened(value, indent)
                return [f"{indent}{target} = {first.lstrip()}", *rest]
            case For():
                return self._loops(stmt, indent)
            case IfThenElse():
                return self._conditional(stmt, indent, "if")
            case Seq(body=body):
                lines = [line for s in body for line in self._statement(s, indent)]
                return lines or [f"{indent}pass"]
            case TirBlock():
                return self._block(stmt, indent)
            case TensorIntrinsic(name=name, buffers=buffers, scalars=scalars):
                addresses = [f"T.address_of({self._expressions.element(*b)})" for b in buffers]
                args = [quoted(name), *addresses, *map(text, scalars)]
                return call_lines(indent, "T.call_intrin(", args)

    def _conditional(self, stmt: IfThenElse, indent: str, word: str) -> list[str]:
        lines = [
            f"{indent}{word} {self._expressions.text(stmt.condition)}:",
            *self._statement(stmt.then_case, indent + INDENT),
        ]
        match stmt.else_case:
            case None:
                return lines
            case IfThenElse() as other:
                return [*lines, *self._conditional(other, indent, "elif")]
            case other:
                return [*lines, f"{indent}else:", *self._statement(other, indent + INDENT)]

    def _loops(self, loop: For, indent: str) -> list[str]:
        """One loop, or a nest of serial loops whose extents do not depend on each other."""
        nest = [loop]
        while isinstance(inner := nest[-1].body, For) and inner.kind == loop.kind == "serial":
            if self._expressions.mentions(inner.extent, {stage.var for stage in nest}):
                break
            nest.append(inner)
        extents = ", ".join(self._expressions.text(stage.extent) for stage in nest)
        iterator = "T.grid" if len(nest) > 1 else _LOOPS[loop.kind]
        self._extents.update((stage.var, stage.extent) for stage in nest)
        with self._variables(stage.var for stage in nest) as names:
            header = f"{indent}for {', '.join(names)} in {iterator}({extents}):"
            return [header, *self._statement(nest[-1].body, indent + INDENT)]

    # --- blocks -----------------------------------------------------------------------

    def _block(self, block: TirBlock, indent: str) -> list[str]:
        inner = indent + INDENT
        bindings = [self._expressions.text(axis.binding) for axis in block.axes]
        extents = [self._expressions.text(axis.extent) for axis in block.axes]
        with self._variables(axis.var for axis in block.axes) as names:
            lines = [f"{indent}with T.block({quoted(block.name)}):"]
            if len(names) > 1 and all(map(self._is_remapped, block.axes)):
                kinds = "".join("S" if axis.kind == "spatial" else "R" for axis in block.axes)
                mapped = f'T.axis.remap("{kinds}", [{", ".join(bindings)}])'
                lines.append(f"{inner}{', '.join(names)} = {mapped}")
            else:
                for name, axis, extent, binding in zip(
                    names, block.axes, extents, bindings, strict=True
                ):
                    lines.append(f"{inner}{name} = T.axis.{axis.kind}({extent}, {binding})")
            lines += self._allocs(block.allocs, inner)
            if block.init is not None:
                lines.append(f"{inner}with T.init():")
                lines += self._statement(block.init, inner + INDENT)
            return [*lines, *self._statement(block.body, inner)]

    def _is_remapped(self, axis: BlockAxis) -> bool:
        binding = axis.binding
        return isinstance(binding, TirVar) and self._extents.get(binding) == axis.extent


def _shape(extents: list[str]) -> str:
    return f"({', '.join(extents)}{',' if len(extents) == 1 else ''})"


def _signature(buffer: Buffer) -> str:
    if buffer.dtype == HANDLE:
        return "T.handle"
    shape = _shape([str(d) if isinstance(d, int) else f'"{dims.text(d)}"' for d in buffer.shape])
    return f'T.Buffer({shape}, "{buffer.dtype}")'
