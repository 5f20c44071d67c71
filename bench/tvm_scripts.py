"""Modules in the sources of Python tests, such as TVM's: how many this reader reads, and why not.

Run from the top of the repository: ``python -m bench.tvm_scripts FOLDER [--examples]``.
A module is a class with ``@I.ir_module``, or a function with ``@R.function`` outside of one.  Its
names around it have their values where these are literals or dimension symbols.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import click

from relax_egraph.errors import RelaxEgraphError
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.structural import structural_equal
from relax_egraph.script.outer_names import OuterNames
from relax_egraph.script.parser import parse, read_class, read_function
from relax_egraph.script.printer import print_with_constants
from relax_egraph.script.signatures import declared_symbols
from relax_egraph.script.source import Source, dotted

Definition = ast.ClassDef | ast.FunctionDef

_BEYOND = re.compile(
    r"R\.dist\.|R\.DTensor|R\.ccl\.|T\.thread_binding|scope \"|R\.emit|R\.call_py_func"
)
"""Reasons that are of several machines, of GPUs, or of functions of Python that a script calls."""

FOLDER = click.Path(exists=True, path_type=Path)


@dataclass(slots=True)
class Around:
    """The names around a definition: literals, dimension symbols, and those of unknown value."""

    values: dict[str, object] = field(default_factory=dict[str, object])
    symbols: set[str] = field(default_factory=set[str])
    unknown: set[str] = field(default_factory=set[str])

    def copy(self) -> "Around":
        """A copy, for an inner scope."""
        return Around(dict(self.values), set(self.symbols), set(self.unknown))

    def hide(self, *names: str) -> None:
        """Give `names` values that only Python knows."""
        for name in names:
            self.values.pop(name, None)
        self.symbols.difference_update(names)
        self.unknown.update(names)

    def show(self, values: Mapping[str, object], symbols: Iterable[str]) -> None:
        """Give names literal `values`, or make them `symbols`."""
        self.unknown.difference_update(values)
        self.symbols.update(symbols)
        self.values.update({n: v for n, v in values.items() if n not in self.symbols})


@dataclass(frozen=True, slots=True)
class Script:
    """A module in a file: its definition and the names around it."""

    source: Source
    node: Definition
    around: Around

    @property
    def place(self) -> str:
        """The file, the line and the name."""
        return f"{Path(self.source.filename).name}:{self.node.lineno} {self.node.name}"

    @property
    def is_whole(self) -> bool:
        """Whether no name of the definition has a value that only Python knows."""
        nodes = list(ast.walk(self.node))
        own = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        own |= {n.arg for n in nodes if isinstance(n, ast.arg)}
        own |= {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        used = {n.id for n in nodes if isinstance(n, ast.Name)}
        return not (used - own) & self.around.unknown


@dataclass(frozen=True, slots=True)
class Outcome:
    """The module of a script, or the reason why there is none."""

    script: Script
    module: IRModule | None
    reason: str


def scripts(path: Path) -> Iterator[Script]:
    """The modules in a file or a folder, those that are meant to be refused left out."""
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        try:
            source = Source(file.read_text("utf-8"), str(file))
        except RelaxEgraphError:
            continue
        yield from _inside(source, source.tree.body, Around())


def read(script: Script) -> IRModule:
    """Read a script, as its decorator does.  Raises `ScriptError`."""
    around = OuterNames(script.source, script.around.values, {})
    match script.node:
        case ast.ClassDef(name=name, body=body):
            own = {name, *(s.name for s in body if isinstance(s, ast.FunctionDef))}
            own.update(s for statement in body for s in declared_symbols(statement))
            resolved = [
                around.function(s, own)
                if isinstance(s, ast.FunctionDef)
                else around.statement(s, own)
                for s in body
            ]
            plain = ast.ClassDef(name, [], [], resolved, script.node.decorator_list)
            return read_class(
                script.source, ast.copy_location(plain, script.node), script.around.symbols
            )
        case ast.FunctionDef(name=name):
            function = read_function(
                script.source, around.function(script.node), script.around.symbols
            )
            return IRModule({name: function})


def outcome(script: Script) -> Outcome:
    """Read a script; its module must print and read back equal."""
    try:
        module = read(script)
    except RelaxEgraphError as error:
        return Outcome(script, None, str(error).splitlines()[0].split(": ", 1)[-1])
    try:
        text, constants = print_with_constants(module)
        again = parse(text, constants=constants)
    except RelaxEgraphError as error:
        return Outcome(script, module, f"reads back: {error}".splitlines()[0])
    return Outcome(script, module, "" if structural_equal(again, module) else "reads back unequal")


def _inside(source: Source, body: list[ast.stmt], around: Around) -> Iterator[Script]:
    around = around.copy()
    for statement in body:
        match statement:
            case ast.ClassDef() if _is_module(statement):
                yield Script(source, statement, around.copy())
            case ast.FunctionDef() if _is_function(statement):
                yield Script(source, statement, around.copy())
                around.hide(statement.name)
            case ast.With(items=items) if any("raises" in ast.unparse(i) for i in items):
                continue
            case ast.FunctionDef(name=name, args=args):
                around.hide(name)
                inner = around.copy()
                inner.hide(*(a.arg for a in (*args.args, *args.kwonlyargs)))
                yield from _inside(source, statement.body, inner)
            case ast.For(target=target):
                inner = around.copy()
                inner.hide(*_names(target))
                yield from _inside(source, statement.body, inner)
            case ast.ClassDef() | ast.With() | ast.If():
                yield from _inside(source, statement.body, around)
            case ast.ImportFrom(module=module, names=names) if module and _is_other(module):
                around.hide(*(alias.asname or alias.name for alias in names))
            case ast.Import(names=names):
                others = [alias for alias in names if _is_other(alias.name)]
                around.hide(*(alias.asname or alias.name.partition(".")[0] for alias in others))
            case ast.Assign(targets=targets, value=value):
                names = [n for t in targets for n in _names(t)]
                around.hide(*names)
                if symbols := declared_symbols(statement):
                    around.show(dict.fromkeys(symbols), symbols)
                elif len(names) == 1:
                    with suppress(ValueError):
                        around.show({names[0]: ast.literal_eval(value)}, ())
            case _:
                continue


def _is_other(module: str) -> bool:
    """Whether names of `module` are no part of scripts."""
    return module.partition(".")[0] not in ("tvm", "typing", "relax_egraph")


def _names(target: ast.expr) -> list[str]:
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]


def _is_module(node: ast.ClassDef) -> bool:
    if [d.rpartition(".")[2] for d in map(_decorator, node.decorator_list)] != ["ir_module"]:
        return False
    functions = [s for s in node.body if isinstance(s, ast.FunctionDef)]
    return any(map(_is_function, functions))


def _is_function(node: ast.FunctionDef) -> bool:
    return any(_decorator(d) == "R.function" for d in node.decorator_list)


def _decorator(node: ast.expr) -> str:
    return dotted(node.func if isinstance(node, ast.Call) else node)


def kind_of(reason: str) -> str:
    """The reason without names and numbers."""
    reason = re.sub(r"`[^`]*`", "`…`", reason)
    return re.sub(r"\b\d+\b", "#", reason)


@click.command
@click.argument("folder", type=FOLDER)
@click.option("--examples", is_flag=True, help="The first places of each reason.")
def main(folder: Path, examples: bool) -> None:
    """Read all modules in the sources under FOLDER; count those read, and reasons of the others."""
    every = list(scripts(folder))
    outcomes = [outcome(s) for s in every if s.is_whole]
    refused = [o for o in outcomes if o.module is None]
    beyond = [o for o in refused if _BEYOND.search(o.reason)]
    counts = Counter(kind_of(o.reason) for o in outcomes if o.reason)
    print(f"{len(every)} modules, {len(every) - len(outcomes)} with values that only Python knows")
    print(f"of {len(outcomes)}, {1 - len(refused) / max(1, len(outcomes)):.1%} are read")
    within = len(outcomes) - len(beyond)
    print(f"of the {within} for one CPU, {1 - (len(refused) - len(beyond)) / max(1, within):.1%}")
    print(f"{sum(1 for o in outcomes if o.module and o.reason)} do not read back equal")
    for reason, count in counts.most_common():
        print(f"{count:5} {reason}")
        for o in [o for o in outcomes if kind_of(o.reason) == reason][: 3 * examples]:
            print(f"          {o.script.place}: {o.reason}")


if __name__ == "__main__":
    main()
