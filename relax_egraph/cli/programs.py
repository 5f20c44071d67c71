"""``relax-egraph show``, ``optimize`` and ``run``: what is done with programs.

FILE is a program in script form (with its constants in an ``.npz`` beside it), or a saved
executable (``.rxe``).
"""

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.syntax import Syntax

import relax_egraph as rx
from relax_egraph.cli.group import EXISTING, commands
from relax_egraph.cli.reading import (
    EXECUTABLE,
    array_of,
    machine_running,
    module_of,
    profile_of,
    size_of,
)
from relax_egraph.errors import RelaxEgraphError

STAGES = ("relax", "egraph", "kernels", "tir", "llvm", "bytecode")


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
@click.option("--tolerance", default=0.0, help="Keep weights in fewer bits, within this error.")
@click.option("--assume", multiple=True, metavar="CONDITION", help='Of symbols: "s % 8 == 0".')
@click.option(
    "--variant", "variants", multiple=True, metavar="RANGES", help="Plans by size: s=1,2:64,65:"
)
@click.option("--hint", "hints", multiple=True, metavar="NAME=SIZE", help="Compare at this size.")
@click.option(
    "--profile", metavar="FILE|calibrated", help="The machine to compare on, as calibrate saves it."
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
def optimize(
    file: Path,
    output: Path,
    rules: tuple[Path, ...],
    without: tuple[str, ...],
    fast_math: bool,
    tolerance: float,
    assume: tuple[str, ...],
    variants: tuple[str, ...],
    hints: tuple[str, ...],
    profile: str | None,
    as_json: bool,
) -> None:
    """Optimize the program FILE; a name ending in .rxe gets the executable, any other the text."""
    try:
        report = rx.explain(
            module_of(file),
            rules=rules,
            without=without,
            fast_math=fast_math,
            tolerance=tolerance,
            assume=assume,
            variants=dict(map(_ranges, variants)),
            hints=dict(size_of(text, "--hint") for text in hints),
            profile=profile_of(profile),
        )
    except RelaxEgraphError:
        raise
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if output.suffix == EXECUTABLE:
        rx.build(report.module, portable=True).save(output)
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
    arguments = dict(array_of(text) for text in inputs)
    result = machine_running(file, function)[function](**arguments)
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
    module = module_of(file)
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


def _ranges(text: str) -> tuple[str, list[tuple[int, int | None]]]:
    """``s=1,2:64,65:`` is ``"s", [(1, 1), (2, 64), (65, None)]``."""
    name, _, ranges = text.partition("=")
    found: list[tuple[int, int | None]] = []
    for written in ranges.split(","):
        least, colon, most = written.partition(":")
        try:
            found.append((int(least), (int(most) if most else None) if colon else int(least)))
        except ValueError:
            needed = "SYMBOL=RANGES, such as s=1,2:64,65:"
            message = f"{text!r} is not of the form {needed}"
            raise click.BadParameter(message, param_hint="--variant") from None
    return name, found


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
