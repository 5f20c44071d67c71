"""``relax-egraph run``: runs a function of a model."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import click

from relax_egraph.base.files import replacing
from relax_egraph.cli import options
from relax_egraph.cli.calling import machine_for
from relax_egraph.cli.group import commands
from relax_egraph.cli.model import ModelFile


@commands.command()
@options.model
@options.inputs
@options.sizes
@options.function
@options.threads
@options.output("Save the result to FILE: one array as .npy, several as .npz.")
@options.as_json
def run(
    model: ModelFile,
    inputs: tuple[tuple[str, Any], ...],
    sizes: tuple[tuple[str, int], ...],
    function: str,
    threads: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Run a function of MODEL on arrays and print its result.

    Missing arguments are random, the same each time, with the sizes from --size. In an .npz file,
    the results are named arr_0, arr_1 and so on.
    """
    if output is not None and output.suffix not in (".npy", ".npz"):
        raise click.BadParameter(f"{output}: needs .npy or .npz", param_hint="--output")
    machine, arguments = machine_for(model, function, inputs, sizes, threads)
    result = machine[function](**arguments.values)
    if output is not None:
        _save(output, result)
    if as_json:
        report = {"file": str(model), "function": function, "random": arguments.random}
        click.echo(json.dumps({**report, "result": _plain(result)}))
        return
    if arguments.random:
        click.echo(f"random: {', '.join(arguments.random)}", err=True)
    if output is None:
        click.echo("\n".join(_described(result)))


def results_of(result: Any) -> list[Any]:
    """The results as a flat list: tuples are flattened, a shape is one result."""
    if isinstance(result, tuple):
        parts = cast(tuple[Any, ...], result)
        if not parts or not all(isinstance(part, int) for part in parts):
            return [within for part in parts for within in results_of(part)]
    return [result]


def _described(result: Any) -> Iterator[str]:
    """The text of each result, after its type if there are several."""
    results = results_of(result)
    for number, value in enumerate(results):
        if len(results) > 1:
            yield f"{number}: {_type(value)}"
        yield str(value)


def _type(value: Any) -> str:
    import numpy as np

    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}{list(value.shape)}"
    return type(value).__name__


def _save(output: Path, result: Any) -> None:
    import numpy as np

    arrays = [np.asarray(value) for value in results_of(result)]
    if any(array.dtype == object for array in arrays):
        raise click.UsageError("the result is not of arrays alone: it cannot be saved")
    if output.suffix == ".npy" and len(arrays) != 1:
        needed = f"{output.with_suffix('.npz').name}"
        raise click.UsageError(f"the results are {len(arrays)} arrays: needs --output {needed}")
    with replacing(output) as file:
        if output.suffix == ".npy":
            np.save(file, arrays[0])
        else:
            np.savez(file, *arrays)


def _plain(value: Any) -> Any:
    import numpy as np

    match value:
        case np.ndarray():
            array = cast("np.ndarray[Any, Any]", value)
            return {"shape": array.shape, "dtype": array.dtype.name, "data": array.tolist()}
        case tuple():
            return [_plain(part) for part in cast(tuple[Any, ...], value)]
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)
