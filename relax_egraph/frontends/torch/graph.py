"""Converts the nodes of a graph to bindings of a function."""

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

from relax_egraph.errors import ModelError, RelaxEgraphError
from relax_egraph.frontends.building.builder import info_of
from relax_egraph.frontends.building.complex_parts import Parts, imaginary, joined, parted
from relax_egraph.frontends.torch import operators as operators
from relax_egraph.frontends.torch.checks import bind_size
from relax_egraph.frontends.torch.node import Argument, Node
from relax_egraph.frontends.torch.registry import complex_converter_of, converter_of
from relax_egraph.frontends.torch.symbolic_numbers import number_of
from relax_egraph.frontends.torch.symbols import Symbols
from relax_egraph.frontends.torch.tensors import QUANTIZED, array_of, check_supported, dtype_of
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.expr import Constant, Expr
from relax_egraph.ir.struct_info import TensorStructInfo, tensor


class _Poisoned(Exception):
    """A node reads a value that could not be converted."""


@dataclass(slots=True)
class Graph:
    """A graph that is converted: the values of its nodes so far, and the problems.

    `unsupported` are inputs that no node can be converted with.
    """

    bb: BlockBuilder
    symbols: Symbols
    values: dict[fx.Node, Argument] = field(default_factory=dict[fx.Node, Argument])
    problems: dict[fx.Node, str] = field(default_factory=dict[fx.Node, str])
    unsupported: dict[fx.Node, str] = field(default_factory=dict[fx.Node, str])

    def info(self, value: torch.Tensor) -> TensorStructInfo:
        """The struct info of `value`, or of its parts; raises `ModelError` if not supported."""
        check_supported(value)
        return tensor(self.symbols.shape(value), dtype_of(value.dtype))

    def passed_info(self, value: torch.Tensor) -> TensorStructInfo:
        """The struct info of `value` as a parameter or a result; of complex numbers, joined parts.

        Raises `ModelError` if it is not supported.
        """
        info = self.info(value)
        if not value.dtype.is_complex:
            return info
        assert info.dims is not None
        return tensor((*info.dims, 2), info.dtype)

    def taken(self, whole: Expr, value: Any) -> Argument:
        """A parameter or constant as what nodes read, where torch's tensor is `value`."""
        return parted(self._node("parts"), whole) if _is_complex(value) else whole

    def given(self, value: Argument) -> Argument:
        """What a node computes as a result of ``main``."""
        return joined(self._node("joined"), value) if isinstance(value, Parts) else value

    def convert(self, nodes: Sequence[fx.Node], owner: torch.nn.Module) -> None:
        """Convert `nodes`, besides inputs and outputs; failures become problems.

        `owner` has the tensors that ``get_attr`` names.
        """
        for node in nodes:
            try:
                if node.op == "get_attr":
                    with unset_fake_temporarily():
                        held = _attribute(owner, str(node.target))
                        array = array_of(held)
                    self.values[node] = self.taken(Constant(array), held)
                elif node.op == "call_function":
                    self.values[node] = self._call(node)
            except _Poisoned:
                continue
            except RelaxEgraphError as refusal:
                self.problems[node] = str(refusal)
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                self.problems[node] = f"its arguments do not fit together: {error}"

    def check(self) -> None:
        """Raise `ModelError` with all problems, if there are any."""
        if not self.problems:
            return
        count = len(self.problems)
        nodes = "a node" if count == 1 else f"{count} nodes"
        head = f"the program has {nodes} that cannot be converted:"
        raise ModelError("\n".join([head, *said(self.problems)]))

    def _call(self, node: fx.Node) -> Argument:
        meta: Any = node.meta.get("val")
        if isinstance(meta, bool | int | float):
            return meta
        if isinstance(meta, torch.SymInt | torch.SymFloat | torch.SymBool):
            if isinstance(node.target, torch._ops.OpOverload) and converter_of(_name(node)):
                self._convert(node)
            return self._number(meta, node.name)
        if node.target is operator.getitem:
            whole, place = node.args
            return self._argument(whole)[place]
        return self._convert(node)

    def _number(self, value: Any, name: str) -> Argument:
        """A symbolic number as a dimension, computed by the run if it is another function."""
        if not isinstance(value, torch.SymInt) or self.symbols.are_numbers(value):
            return value
        try:
            return self.symbols.dim(value)
        except ModelError:
            node = self._node(name)
            size = self.symbols.sizes[value.node.expr] = self.symbols.new(name)
            bind_size(node, number_of(node, self.symbols, value.node.expr), size)
            return size

    def computed(self, value: Any) -> Expr:
        """A symbolic number or condition as a tensor of rank 0."""
        return number_of(self._node("number"), self.symbols, value.node.expr)

    def _node(self, name: str) -> Node:
        """A node without an operator, to emit calls with."""
        return Node("", name, {}, {}, (), self.bb, self.symbols)

    def _convert(self, node: fx.Node) -> Argument:
        name, meta = _name(node), node.meta.get("val")
        metas: Sequence[Any] = meta if isinstance(meta, tuple | list) else (meta,)
        try:
            results = tuple(self.info(m) if isinstance(m, torch.Tensor) else None for m in metas)
        except ModelError as refusal:
            raise ModelError(f"its result: {refusal}") from None
        operands = (operand.meta.get("val") for operand in node.all_input_nodes)
        is_complex = any(map(_is_complex, (*metas, *operands)))
        converter = complex_converter_of(name) if is_complex else converter_of(name)
        if converter is None:
            raise ModelError(_lacking(node, is_complex))
        made = converter(
            Node(
                *(name, node.name, self._arguments(node), _metas(node), results),
                *(self.bb, self.symbols),
            )
        )
        if not isinstance(meta, tuple | list):
            return self._as_torch_says(made, results[0], node.name)
        assert not isinstance(made, Expr | Parts)
        pairs = zip(made, results, strict=False)
        return [None if m is None else self._as_torch_says(m, r, node.name) for m, r in pairs]

    def _as_torch_says(self, made: Argument, info: TensorStructInfo | None, name: str) -> Argument:
        """`made`, checked to be of the struct info that torch says of it."""
        if info is not None and isinstance(made, Parts):
            imag = imaginary(self._node(name), made)
            parts = (self._as_torch_says(part, info, name) for part in (made.real, imag))
            return Parts(*parts)
        if info is None or not isinstance(made, Expr):
            return made
        own = info_of(made)
        if own.dtype != info.dtype:
            raise ModelError(f"its result is of {own.dtype}, where torch has {info.dtype}")
        assert info.dims is not None
        if own.dims is None:
            return self.bb.emit_match_cast(made, info, name)
        if len(own.dims) != len(info.dims):
            raise ModelError(f"its result is a {own}, where torch has {info}")
        if own.dims == info.dims:
            return made
        return self.bb.emit_match_cast(made, info, name)

    def _arguments(self, node: fx.Node) -> dict[str, Argument]:
        """The arguments of a call of an overload by name, with the defaults of its schema."""
        target = node.target
        assert isinstance(target, torch._ops.OpOverload)
        found: dict[str, Argument] = {}
        for place, parameter in enumerate(target._schema.arguments):
            if place < len(node.args):
                value = node.args[place]
            else:
                value = node.kwargs.get(parameter.name, parameter.default_value)
            found[parameter.name] = self._argument(value)
        return found

    def _argument(self, value: Any) -> Argument:
        if isinstance(value, fx.Node):
            if value in self.unsupported:
                raise ModelError(f"its operand {value.name}: {self.unsupported[value]}")
            if value not in self.values:
                raise _Poisoned
            return self.values[value]
        if isinstance(value, list | tuple):
            return [self._argument(v) for v in value]
        if isinstance(value, torch.SymInt):
            return self._number(value, "size")
        return value


def _is_complex(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype.is_complex


def _lacking(node: fx.Node, is_complex: bool) -> str:
    """Why there is no converter for the overload that `node` calls."""
    if is_complex and converter_of(_name(node)) is not None:
        return "the operator is not supported for complex numbers"
    if _name(node).startswith(_OF_QUANTIZED):
        return QUANTIZED
    if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
        return "it draws random numbers, needs them as an input"
    return "the operator is not supported"


_OF_QUANTIZED = ("aten.quantize_per_", "aten.dequantize.", "quantized.")
"""Operators of quantized tensors, for which torch's tensors without elements have other dtypes."""


def said(problems: Mapping[fx.Node, str]) -> list[str]:
    """A line for each reason in `problems`, with how often it is met and where first."""
    places: dict[str, list[str]] = {}
    for node, reason in problems.items():
        places.setdefault(f"{node.target}: {reason}", []).append(
            place_of(node) or f"node {node.name}"
        )
    return [f"  {reason}{_often(where)}: {where[0]}" for reason, where in places.items()]


def _name(node: fx.Node) -> str:
    return str(node.target)


def _metas(node: fx.Node) -> dict[str, Any]:
    """torch's tensors for the arguments of a call that are tensors, and its result."""
    target = node.target
    assert isinstance(target, torch._ops.OpOverload)
    names = (parameter.name for parameter in target._schema.arguments)
    operands = {
        name: value.meta.get("val")
        for name, value in zip(names, node.args, strict=False)
        if isinstance(value, fx.Node)
    }
    return {**operands, "out": node.meta.get("val")}


def _attribute(owner: torch.nn.Module, path: str) -> Any:
    value: Any = owner
    for name in path.split("."):
        value = getattr(value, name)
    return value


_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_LAYERS = str(Path(torch.nn.__path__[0]).parent)


def place_of(node: fx.Node) -> str | None:
    """Where the user's program calls the operator, ``file:line``, if torch knows it.

    An operator of a layer of torch has the place of the layer's call.
    """
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [frame for frame in frames if not frame[0].startswith(_LAYERS)] or frames
    return f"{own[-1][0]}:{own[-1][1]}" if own else None


def _often(places: Sequence[str]) -> str:
    return "" if len(places) == 1 else f" ({len(places)} times)"
