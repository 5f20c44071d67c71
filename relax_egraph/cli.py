"""The command ``relax-egraph``: show, optimize and run programs, and list rules.

FILE is a program in script form (with its constants in an ``.npz`` beside it), or a saved
executable (``.rxe``).  Exit status: 0 done, 1 the program or its input is wrong, 2 wrong use.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table

import relax_egraph as rx
from relax_egraph.errors import RelaxEgraphError

STAGES = ("relax", "egraph", "kernels", "tir", "llvm", "bytecode")
EXECUTABLE = ".rxe"
EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="relax-egraph")
def commands() -> None:
    """Optimize Relax-like tensor programs with rewrite rules on e-graphs."""


@commands.command()
@click.argument("file", type=EXISTING)
@click.option("--stage", type=click.Choice(STAGES), default="relax", show_default=True)
@click.option("--rules", multiple=True, type=EXISTING, help="A rule file beside the rule book.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(file: Path, stage: str, rules: tuple[Path, ...], as_json: bool) -> None:
    """Print FILE at one stage of its way to machine code."""
    text = _stage(file, stage, rules)
    if as_json:
        click.echo(json.dumps({"file": str(file), "stage": stage, "text": text}))
    else:
        _print_code(text, {"llvm": "llvm", "egraph": "lisp"}.get(stage, "python"))


@commands.command()
@click.argument("file", type=EXISTING)
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path))
@click.option("--rules", multiple=True, type=EXISTING, help="A rule file beside the rule book.")
@click.option("--without", multiple=True, metavar="NAME", help="A family or rule to leave out.")
@click.option("--fast-math", is_flag=True, help="Use rules that only real numbers obey, too.")
@click.option("--assume", multiple=True, metavar="CONDITION", help='Of symbols: "s % 8 == 0".')
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
def optimize(
    file: Path,
    output: Path,
    rules: tuple[Path, ...],
    without: tuple[str, ...],
    fast_math: bool,
    assume: tuple[str, ...],
    as_json: bool,
) -> None:
    """Optimize the program FILE; a name ending in .rxe gets the executable, any other the text."""
    try:
        report = rx.explain(
            _module(file), rules=rules, without=without, fast_math=fast_math, assume=assume
        )
    except RelaxEgraphError:
        raise
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--without") from None
    if output.suffix == EXECUTABLE:
        rx.build(report.module).save(output)
    else:
        rx.save_module(report.module, output)
    if as_json:
        click.echo(json.dumps({"file": str(file), "output": str(output), **report.as_dict()}))
    else:
        Console().print(report.table())


@commands.command()
@click.argument("file", type=EXISTING)
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="An argument.")
@click.option("--function", default="main", show_default=True)
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Save the result as .npy.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def run(
    file: Path, inputs: tuple[str, ...], function: str, output: Path | None, as_json: bool
) -> None:
    """Run a function of FILE on arrays and print what it returns."""
    arguments = dict(_argument(text) for text in inputs)
    saved = file.suffix == EXECUTABLE
    executable = rx.load(file) if saved else rx.build(rx.optimize(_module(file)))
    machine = rx.VirtualMachine(executable)
    if function not in machine:
        raise click.BadParameter(f"no function {function!r} in {file}", param_hint="--function")
    result = machine[function](**arguments)
    if output is not None:
        np.save(output, np.asarray(result))
    if as_json:
        click.echo(json.dumps({"function": function, "result": _plain(result)}))
    elif output is None:
        click.echo(str(result))


@commands.group("rules")
def rule_commands() -> None:
    """What rules can say, and which there are."""


@rule_commands.command("vocabulary")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def print_vocabulary(names: tuple[str, ...], as_json: bool) -> None:
    """Print each NAME that rules can use (or all): its arguments' sorts, and what it means."""
    every = {declaration.name: declaration for declaration in rx.vocabulary()}
    chosen = [every[_known(name, every, "NAME")] for name in names] or list(every.values())
    if as_json:
        click.echo(json.dumps([asdict(declaration) for declaration in chosen]))
        return
    table = Table("name", "arguments", "result", "meaning")
    for d in chosen:
        arguments = " ".join(f"{p.name}:{p.sort}" for p in d.params)
        table.add_row(*map(escape, (d.name, arguments, d.result, d.meaning)))
    Console().print(table)


@rule_commands.command("list")
@click.option("--family", "families", multiple=True, metavar="NAME", help="Only of this family.")
@click.option("--rules", multiple=True, type=EXISTING, help="A rule file beside the rule book.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def print_rules(families: tuple[str, ...], rules: tuple[Path, ...], as_json: bool) -> None:
    """Print every rule: its family, law, what it does to rounding, and place."""
    book = rx.RuleBook.default(rules, fast_math=True)
    known = dict.fromkeys(rule.ruleset for rule in book.rules)
    chosen = {_known(family, known, "--family") for family in families} or known
    found = [rule for rule in book.rules if rule.ruleset in chosen]
    if as_json:
        fields = ("name", "ruleset", "law", "float_class", "form")
        told = [{**{f: getattr(r, f) for f in fields}, "place": str(r.span)} for r in found]
        click.echo(json.dumps(told))
        return
    table = Table("family", "rule", "law", "float", "place")
    for r in found:
        table.add_row(*map(escape, (r.ruleset, r.name, r.law, r.float_class, str(r.span))))
    Console().print(table)


def _known(name: str, known: Iterable[str], hint: str) -> str:
    if name in (names := list(known)):
        return name
    near = [n for n in names if n.endswith(f".{name}")] or get_close_matches(name, names, n=1)
    note = f"; did you mean {near[0]}?" if near else ""
    raise click.BadParameter(f"there is no {name!r}{note}", param_hint=hint)


def _stage(file: Path, stage: str, rules: tuple[Path, ...]) -> str:
    if file.suffix == EXECUTABLE:
        if stage != "bytecode":
            raise click.UsageError(f"{file} is an executable: only --stage bytecode is in it")
        return rx.load(file).as_text()
    module = _module(file)
    if stage == "relax":
        if rules:
            raise click.UsageError("rules do nothing at --stage relax: it is the program as it is")
        return module.script()
    report = rx.explain(module, rules=rules)
    match stage:
        case "egraph":
            return report.egraph_text()
        case "kernels":
            return report.module.script()
        case "tir":
            return rx.lower_module(report.module).script()
        case "llvm":
            return rx.llvm_text(report.module)
        case _:
            return rx.build(report.module).as_text()


def _module(file: Path) -> rx.IRModule:
    try:
        return rx.load_module(file)
    except UnicodeDecodeError:
        needed = f"a program in script form, or an executable ({EXECUTABLE})"
        raise click.BadParameter(f"{file} is no text: needs {needed}") from None


def _argument(text: str) -> tuple[str, Any]:
    name, equals, path = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not of the form NAME=FILE.npy", param_hint="--input")
    try:
        return name, np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise click.BadParameter(f"{path}: {error}", param_hint="--input") from None


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"shape": list(value.shape), "dtype": value.dtype.name, "data": value.tolist()}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value


def _print_code(text: str, language: str) -> None:
    console = Console()
    if console.is_terminal:
        console.print(Syntax(text, language, background_color="default"), soft_wrap=True)
    else:
        click.echo(text)


def main(argv: list[str] | None = None) -> None:
    """Run the command; errors of this package are one message on stderr and status 1."""
    try:
        commands.main(args=argv, standalone_mode=True)
    except (RelaxEgraphError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
