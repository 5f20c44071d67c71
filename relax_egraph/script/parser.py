"""Reads a module: the dialect of TVMScript, version 0.13 and later, with Python's own parser."""

import ast
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph.base.parameters import NAME, TEXT, collection, instance, takes
from relax_egraph.errors import IllFormed
from relax_egraph.ir.depth import deep
from relax_egraph.ir.expr import Constant, Function, GlobalVar
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.script.aliases import use_own_names
from relax_egraph.script.functions import FunctionReader
from relax_egraph.script.leaves import METADATA
from relax_egraph.script.literals import read_const
from relax_egraph.script.module_head import read_statement
from relax_egraph.script.purity import impure_functions, writes_in_place
from relax_egraph.script.scope import Globals
from relax_egraph.script.signatures import read_options
from relax_egraph.script.source import Source, dotted
from relax_egraph.script.tir_parser import read_prim_func
from relax_egraph.tir.stmt import PrimFunc

_CONSTANTS = collection(
    "a sequence of constants", instance("an array or a Constant", np.ndarray, Constant)
)

_NONE: Mapping[str, BaseFunc] = {}


@takes(text=TEXT, filename=NAME, constants=_CONSTANTS)
def parse(
    text: str,
    *,
    filename: str = "<script>",
    constants: Sequence[npt.NDArray[Any] | Constant] = (),
) -> IRModule:
    """Read a module, or a function without a module around it.

    `constants` are the values of ``metadata["relax.expr.Constant"][i]``, by default those that the
    text assigns to ``metadata``.  The text may be indented as a whole.  Raises `ScriptError`.
    """
    source = Source(text, filename)
    with _deep(source):
        return _module(source, constants)


def read_class(
    source: Source,
    node: ast.ClassDef,
    symbols: Iterable[str] = (),
    functions: Mapping[str, BaseFunc] = _NONE,
) -> IRModule:
    """Read a module that is a class of a Python file.

    Its functions also see outer `symbols` and `functions`; the module gets these functions.
    """
    module = _around(Globals(source, {"cls", "Module"}), symbols, functions)
    with _deep(source):
        read = _functions(module, _class_body(module, node))
    return replace(read, functions={**functions, **read.functions})


def read_function(source: Source, node: ast.FunctionDef, symbols: Iterable[str] = ()) -> BaseFunc:
    """Read a function of a Python file without a module around it."""
    module = _around(Globals(source, {"cls", "Module"}), symbols, {})
    with _deep(source):
        return _functions(module, [node])[node.name]


@contextmanager
def _deep(source: Source) -> Generator[None]:
    try:
        with deep(IllFormed, "an expression is nested too deeply"):
            yield
    except IllFormed as refusal:
        raise source.error(source.tree, str(refusal)) from None


def _around(module: Globals, symbols: Iterable[str], functions: Mapping[str, BaseFunc]) -> Globals:
    module.symbols.update(symbols)
    for name, function in functions.items():
        module.functions[name] = GlobalVar(name, function.struct_info)
        if isinstance(function, PrimFunc):
            module.loops.add(name)
        elif isinstance(function, Function) and not function.is_pure:
            module.impure.add(name)
    return module


def _module(source: Source, constants: Sequence[npt.NDArray[Any] | Constant]) -> IRModule:
    use_own_names(source.tree)
    module = Globals(source, {"cls", "Module"})
    module.constants = tuple(c if isinstance(c, Constant) else Constant(c) for c in constants)
    nodes: list[ast.FunctionDef] = []
    for statement in source.tree.body:
        match statement:
            case ast.Import() | ast.ImportFrom():
                pass
            case ast.ClassDef():
                if sum(isinstance(s, ast.ClassDef) for s in source.tree.body) > 1:
                    raise source.error(statement, "a text has one module, this one has several")
                nodes += _class_body(module, statement)
            case ast.FunctionDef():
                nodes.append(statement)
            case ast.Assign(targets=[ast.Name(id="metadata")], value=value):
                listed = _metadata(source, value)
                module.constants = module.constants or listed
            case _:
                read_statement(module, statement)
    if not nodes and not any(isinstance(s, ast.ClassDef) for s in source.tree.body):
        message = "no module: needs `@I.ir_module class Module:` or `@R.function def main(…):`"
        raise source.error(source.tree, message)
    return _functions(module, nodes)


def _class_body(module: Globals, node: ast.ClassDef) -> list[ast.FunctionDef]:
    source = module.source
    if [_decorator(d).rpartition(".")[2] for d in node.decorator_list] != ["ir_module"]:
        raise source.error(node, f"class {node.name} needs `@I.ir_module`")
    module.aliases.add(node.name)
    functions: list[ast.FunctionDef] = []
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef):
            functions.append(statement)
        elif not isinstance(statement, ast.Pass):
            read_statement(module, statement)
    return functions


def _functions(module: Globals, nodes: Sequence[ast.FunctionDef]) -> IRModule:
    """All functions; loop functions and signatures come first, so that each may call each."""
    loops: dict[str, PrimFunc] = {}
    graph: dict[str, FunctionReader] = {}
    module.impure |= _impure(module, nodes)
    for node in nodes:
        if node.name in loops or node.name in graph:
            raise module.source.error(node, f"function {node.name} is defined twice")
        match [_decorator(d) for d in node.decorator_list]:
            case ["T.prim_func"]:
                info = loops.setdefault(node.name, read_prim_func(module, node)).struct_info
                module.loops.add(node.name)
            case ["R.function"]:
                info = graph.setdefault(node.name, FunctionReader(module, node)).struct_info
            case _:
                message = f"function {node.name} needs `@R.function` or `@T.prim_func`"
                raise module.source.error(node, message)
        module.functions[node.name] = GlobalVar(node.name, info)
    read: dict[str, BaseFunc] = {}
    for node in nodes:
        name = node.name
        read[name] = loops[name] if name in loops else graph[name].read()
        module.functions[name] = GlobalVar(name, read[name].struct_info)
    return IRModule(read, module.attrs, module.global_infos)


def _impure(module: Globals, nodes: Sequence[ast.FunctionDef]) -> frozenset[str]:
    """The functions among `nodes` with side effects: declared, inferred, or as loop functions."""
    relax: dict[str, ast.FunctionDef] = {}
    writes = module.loops | module.impure
    marked: dict[str, bool] = {}
    for node in nodes:
        if [_decorator(d) for d in node.decorator_list] != ["R.function"]:
            writes.add(node.name)
            continue
        relax[node.name] = node
        options = read_options(node, module, ("private", "pure"))
        if "pure" in options:
            marked[node.name] = options["pure"]
    unmarked = (node for name, node in relax.items() if name not in marked)
    module.in_place |= {node.name for node in unmarked if writes_in_place(node)}
    return impure_functions(relax, marked, writes, module.in_place)


def _metadata(source: Source, node: ast.expr) -> tuple[Constant, ...]:
    """The constants of ``metadata = {"relax.expr.Constant": [R.const(…), …]}``."""
    match node:
        case ast.Dict(keys=[ast.Constant(value=key)], values=[ast.List(elts=elements)]):
            if key == METADATA and all(_is_const(e) for e in elements):
                return tuple(read_const(source, e) for e in elements if isinstance(e, ast.Call))
        case _:
            pass
    raise source.error(node, f'metadata is no {{"{METADATA}": [R.const(…), …]}}')


def _decorator(node: ast.expr) -> str:
    return dotted(node.func if isinstance(node, ast.Call) else node)


def _is_const(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) == "R.const"
