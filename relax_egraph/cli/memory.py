"""``relax-egraph memory``: where the tensors of a program lie, and when."""

import json
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

import relax_egraph as rx
from relax_egraph.cli.group import EXISTING, commands
from relax_egraph.cli.memory_picture import picture
from relax_egraph.cli.reading import EXECUTABLE, module_of, size_of
from relax_egraph.files import replacing
from relax_egraph.memory import Dim, MemoryPlan, plan_memory, written


@commands.command()
@click.argument("file", type=EXISTING)
@click.option("--function", default="main", show_default=True)
@click.option("--size", "sizes", multiple=True, metavar="NAME=SIZE", help="What a symbol is.")
@click.option("--svg", type=click.Path(path_type=Path), help="Save a picture of lifetimes there.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as one JSON object.")
def memory(
    file: Path, function: str, sizes: tuple[str, ...], svg: Path | None, as_json: bool
) -> None:
    """Print where the tensors of a function of FILE lie, in bytes, and for how long.

    Where a symbol has no size, bytes are written over it.
    """
    if file.suffix == EXECUTABLE:
        raise click.UsageError(f"{file} is an executable: needs a program, which is planned")
    plans = plan_memory(rx.optimize(module_of(file)))
    if function not in plans:
        raise click.BadParameter(f"no function {function!r} in {file}", param_hint="--function")
    plan = plans[function].at(dict(size_of(text, "--size") for text in sizes))
    if svg is not None:
        if plan.symbols:
            lacking = ", ".join(f"--size {name}=…" for name in plan.symbols)
            raise click.UsageError(f"a picture has sizes in bytes: needs {lacking}")
        with replacing(svg) as written_svg:
            written_svg.write(picture(plan, f"{file.name}: {function}").encode())
    if as_json:
        click.echo(json.dumps({"file": str(file), "function": function, **plan.as_dict()}))
    else:
        console = Console()
        console.print(_tensors(plan))
        console.print(_totals(plan))


def _text(size: Dim) -> str:
    found = written(size)
    return f"{found:,}" if isinstance(found, int) else found


def _tensors(plan: MemoryPlan) -> Table:
    table = Table("tensor", "bytes", "offset", "from", "to", "made by", "in place of")
    for column in table.columns[1:5]:
        column.justify = "right"
    for t in plan.tensors:
        offset = _text(t.offset) if plan.storages[t.storage].is_arena else "its own"
        made_by = plan.steps[t.begin]
        place = t.replaces or ""
        table.add_row(t.name, _text(t.size), offset, str(t.begin), str(t.end), made_by, place)
    return table


def _totals(plan: MemoryPlan) -> Table:
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
