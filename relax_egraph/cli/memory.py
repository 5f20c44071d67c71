"""``relax-egraph memory``: the memory plan of a program."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

import relax_egraph as rx
from relax_egraph.base.files import replacing
from relax_egraph.base.progress import step
from relax_egraph.cli import options
from relax_egraph.cli.group import commands
from relax_egraph.cli.model import ModelFile
from relax_egraph.cli.values import output

if TYPE_CHECKING:
    from relax_egraph.lower.memory import Dim, MemoryPlan


@commands.command()
@options.model
@options.sizes
@options.function
@click.option("--svg", type=output, metavar="FILE", help="Save a picture of the lifetimes to FILE.")
@options.optimization
@options.as_json
def memory(
    model: ModelFile,
    sizes: tuple[tuple[str, int], ...],
    function: str,
    svg: Path | None,
    how: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Print the offsets and lifetimes of the tensors of MODEL.

    Sizes in bytes contain the symbols without --size. MODEL must be a program or an ONNX model: the
    memory of an executable is already planned.
    """
    module = model.optimized(how).module
    with step("planning memory"):
        plans = rx.plan_memory(module)
    if function not in plans:
        raise click.BadParameter(f"no function {function!r} in {model}", param_hint="--function")
    whole = plans[function]
    for name, _ in sizes:
        if name not in whole.symbols:
            has = ", ".join(whole.symbols) or "none"
            message = f"no size in the plan has the symbol {name}; they have {has}"
            raise click.BadParameter(message, param_hint="--size")
    plan = whole.at(dict(sizes))
    if svg is not None:
        if plan.symbols:
            lacking = ", ".join(f"--size {name}=…" for name in plan.symbols)
            raise click.UsageError(f"a picture has sizes in bytes: needs {lacking}")
        from relax_egraph.cli.memory_picture import picture

        with replacing(svg) as written_svg:
            written_svg.write(picture(plan, f"{model.path.name}: {function}").encode())
    if as_json:
        click.echo(json.dumps({"file": str(model), "function": function, **plan.as_dict()}))
    else:
        console = Console()
        console.print(_tensors(plan))
        console.print(_totals(plan))


def _text(size: "Dim") -> str:
    from relax_egraph.lower.memory import size_text

    text = size_text(size)
    return f"{text:,}" if isinstance(text, int) else text


def _tensors(plan: "MemoryPlan") -> Table:
    table = Table("tensor", "bytes", "offset", "from", "to", "computed by", "in place of")
    for column in table.columns[1:5]:
        column.justify = "right"
    for t in plan.tensors:
        offset = _text(t.offset) if plan.storages[t.storage].is_arena else "its own"
        made_by = plan.steps[t.begin]
        place = t.replaces or ""
        table.add_row(t.name, _text(t.size), offset, str(t.begin), str(t.end), made_by, place)
    return table


def _totals(plan: "MemoryPlan") -> Table:
    table = Table("memory", "bytes")
    table.columns[1].justify = "right"
    table.add_row("arena", _text(plan.arena))
    table.add_row("arena and what leaves the function", _text(plan.total))
    table.add_row("largest live set", _text(plan.largest_live))
    table.add_row("without reuse", _text(plan.unshared))
    table.add_row("weights", _text(plan.weights))
    if plan.unplanned:
        names = ", ".join(v.name for v in plan.unplanned)
        table.add_row("of a size that is computed", names)
    return table
