"""The arguments of a call: arrays from the command line, random values for the others."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import click

import relax_egraph as rx
from relax_egraph.errors import RunError, nearest
from relax_egraph.ir.syntax import parsed_expression


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments by parameter; `random` are the parameters with random values.

    `sizes` are the sizes of symbols from the command line.
    """

    values: Mapping[str, Any]
    random: tuple[str, ...]
    sizes: Mapping[str, int]


Inputs: TypeAlias = Sequence[tuple[str, Any]]
SymbolSizes: TypeAlias = Sequence[tuple[str, int]]


def arguments_in(
    module: "rx.IRModule", function: str, inputs: Inputs, sizes: SymbolSizes
) -> Arguments:
    """The arguments for `function` of `module`, from the options of the command line.

    The arrays determine the sizes of symbols without a size option.
    """
    called = dict(module.relax_functions()).get(function)
    if called is None:
        raise _no_function(function)
    info = {p.name: str(p.struct_info) for p in called.params}
    return _arguments(function, info, inputs, sizes)


def arguments_of(
    machine: "rx.VirtualMachine", function: str, inputs: Inputs, sizes: SymbolSizes
) -> Arguments:
    """The same for the executable that `machine` runs."""
    if function not in machine:
        raise _no_function(function)
    called = machine.executable[function]
    info = dict(zip(called.params, called.param_info, strict=True))
    return _arguments(function, info, inputs, sizes)


def _no_function(name: str) -> click.BadParameter:
    return click.BadParameter(f"no function {name!r} in the model", param_hint="--function")


def _arguments(
    function: str, info: Mapping[str, str], inputs: Inputs, sizes: SymbolSizes
) -> Arguments:
    """The arguments, where `info` has the type of each parameter in script syntax."""
    arrays = dict(inputs)
    for name in arrays:
        _check("parameter", name, info, f"{function} has", "--input")
    symbols = {s: None for text in info.values() for s in _symbols(text)}
    for name, _ in sizes:
        _check("symbol", name, symbols, f"{function} has", "--size")
    known = {s: k for name in arrays for s, k in _sizes(info[name], arrays[name])} | dict(sizes)
    random = tuple(name for name in info if name not in arrays)
    try:
        drawn = _random(random, info, known) if random else {}
    except RunError as lack:
        raise click.UsageError(str(lack)) from None
    return Arguments({name: drawn.get(name, arrays.get(name)) for name in info}, random, known)


def _random(names: Sequence[str], info: Mapping[str, str], sizes: Mapping[str, int]) -> Any:
    from relax_egraph.cli.random_inputs import random_input  # and sympy, for their extents

    return {name: random_input(name, info[name], sizes) for name in names}


def _check(what: str, name: str, among: Mapping[str, object], who: str, hint: str) -> None:
    if name not in among:
        has = ", ".join(among) or "none"
        message = f"{who} no {what} {name}; it has {has}", nearest(name, among)
        raise click.BadParameter("; ".join(filter(None, message)), param_hint=hint)


def _symbols(info: str) -> Iterator[str]:
    """The symbols in the type of a parameter, in script syntax."""
    nodes = list(ast.walk(parsed_expression(info))) if info else []
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        if isinstance(node, ast.Name) and id(node) not in called and node.id != "R":
            yield node.id


def _sizes(info: str, array: Any) -> Iterator[tuple[str, int]]:
    """The sizes of symbols that are extents of `array`."""
    match parsed_expression(info) if info else None:
        case ast.Call(func=ast.Attribute(attr="Tensor"), args=[ast.Tuple(elts=extents), *_]):
            for extent, size in zip(extents, array.shape, strict=False):
                if isinstance(extent, ast.Name):
                    yield extent.id, size
        case _:
            pass
