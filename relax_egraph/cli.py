"""The command ``relax-egraph``: show, optimize and run programs.

FILE is a program in script form (with its constants in an ``.npz`` beside it), or a saved
executable (``.rxe``).  Exit status: 0 done, 1 the program or its input is wrong, 2 wrong use.
"""

import json
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.syntax import Syntax

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
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
def optimize(file: Path, output: Path, rules: tuple[Path, ...], as_json: bool) -> None:
    """Optimize the program FILE; a name ending in .rxe gets the executable, any other the text."""
    report = rx.explain(_module(file), rules=rules)
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
