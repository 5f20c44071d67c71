"""Options that several commands share."""

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from relax_egraph.cli import values
from relax_egraph.cli.model import ModelFile

Command = TypeVar("Command", bound=Callable[..., Any])

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
function = click.option(
    "--function", default="main", show_default=True, metavar="NAME", help="The function to use."
)
inputs = click.option(
    "--input",
    "inputs",
    multiple=True,
    type=values.array,
    metavar="NAME=FILE.npy",
    help="The argument of a parameter.",
)
archive = click.option(
    "--inputs",
    "archive",
    type=values.archive,
    metavar="FILE.npz",
    help="Arguments by name.",
)
sizes = click.option(
    "--size",
    "sizes",
    multiple=True,
    type=values.size,
    metavar="NAME=SIZE",
    help="The size of a symbol, such as n=128.",
)
threads = click.option(
    "--threads",
    type=click.IntRange(1, 256),
    metavar="COUNT",
    help="Number of threads of kernels, by default all.",
)
machine = click.option(
    "--machine",
    type=values.machine,
    metavar="FILE|calibrated",
    help="The profile of the target machine, from calibrate.",
)
rules = click.option(
    "--rules",
    multiple=True,
    type=values.EXISTING,
    metavar="FILE",
    help="A rule file to add to the rule book.",
)
processes = click.option(
    "--processes",
    type=click.IntRange(1, 256),
    default=os.cpu_count() or 1,
    metavar="COUNT",
    help="Number of parallel processes, by default one a core.",
)


def output(what: str, *, required: bool = False) -> Callable[[Command], Command]:
    """The option ``--output``, with the help text `what`."""
    return click.option(
        "-o", "--output", type=values.output, metavar="FILE", required=required, help=what
    )


def seeds(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options ``--seed`` and ``--seeds``: the command gets the range `seeds`."""

    @click.option(
        "--seed",
        type=int,
        default=0,
        show_default=True,
        metavar="NUMBER",
        help="The random seed.",
    )
    @click.option(
        "--seeds",
        "count",
        type=click.IntRange(min=1),
        default=1,
        metavar="COUNT",
        help="Use so many seeds, the first of which is --seed.",
    )
    @wraps(command)
    def wrapper(*args: Any, seed: int, count: int, **rest: Any) -> Any:
        return command(*args, seeds=range(seed, seed + count), **rest)

    return wrapper


def tasks(command: Command) -> Command:
    """The options ``--ray`` and ``--journal`` of a command whose work is many tasks."""
    address = click.option(
        "--ray",
        "ray_address",
        metavar="ADDRESS|local",
        help="Run on the Ray cluster at ADDRESS, or on one that is started on this machine.",
    )
    journal = click.option(
        "--journal",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Keep answers here; a run with the same options goes on where an earlier one stopped.",
    )
    return address(journal(command))


def tolerances(command: Command) -> Command:
    """The options ``--tol`` and ``--atol`` of a comparison of results."""
    relative = click.option(
        "--tol",
        type=click.FloatRange(min=0),
        metavar="SHARE",
        help="Relative tolerance of results; by default half the digits.",
    )
    absolute = click.option(
        "--atol",
        type=click.FloatRange(min=0),
        metavar="SIZE",
        help="Absolute tolerance of results; by default --tol of the largest result.",
    )
    return relative(absolute(command))


_shapes = click.option(
    "--shape",
    "shapes",
    multiple=True,
    type=values.shape,
    metavar="NAME=EXTENTS",
    help="The shape of an ONNX model's input, such as x=1,n,224.",
)


def model(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument MODEL with its option ``--shape``: the command gets a `ModelFile`."""

    @click.argument("model", type=values.EXISTING)
    @_shapes
    @wraps(command)
    def wrapper(*args: Any, model: Any, shapes: Any, **rest: Any) -> Any:
        return command(*args, model=ModelFile(model, dict(shapes)), **rest)

    return wrapper


def models(command: Callable[..., Any]) -> Callable[..., Any]:
    """The arguments MODEL... with the option ``--shape``: the command gets `ModelFile`s."""

    @click.argument("models", type=values.EXISTING, nargs=-1, required=True, metavar="MODEL...")
    @_shapes
    @wraps(command)
    def wrapper(*args: Any, models: Any, shapes: Any, **rest: Any) -> Any:
        files = tuple(ModelFile(path, dict(shapes)) for path in dict.fromkeys(models))
        return command(*args, models=files, **rest)

    return wrapper


def optimization(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of optimization: the command gets keywords of `relax_egraph.optimize` as `how`."""

    @rules
    @click.option("--without", multiple=True, metavar="NAME", help="A family or rule to leave out.")
    @click.option("--fast-math", is_flag=True, help="Also use rules of real numbers only.")
    @click.option(
        "--tolerance",
        type=float,
        metavar="SHARE",
        help="Allowed error of results, for approximations such as weights in fewer bits.",
    )
    @click.option(
        "--assume",
        multiple=True,
        metavar="CONDITION",
        help='A condition that symbols satisfy, such as "s % 8 == 0".',
    )
    @click.option(
        "--hint",
        "hints",
        multiple=True,
        type=values.size,
        metavar="NAME=SIZE",
        help="The size of a symbol for the cost model.",
    )
    @click.option(
        "--variant",
        "variants",
        multiple=True,
        type=values.variant,
        metavar="SYMBOL=RANGES",
        help="A program for each range of a symbol, such as s=1,2:64,65:.",
    )
    @click.option(
        "--improve",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        help="Search so long for the optimum, from the best program known.",
    )
    @machine
    @wraps(command)
    def wrapper(
        *args: Any,
        rules: Any,
        without: Any,
        fast_math: Any,
        tolerance: Any,
        assume: Any,
        hints: Any,
        variants: Any,
        improve: Any,
        machine: Any,
        **rest: Any,
    ) -> Any:
        how = {
            "rules": rules,
            "without": without,
            "fast_math": fast_math,
            "assume": assume,
            "hints": dict(hints),
            "variants": dict(variants),
            "profile": machine,
        }
        keywords = {keyword: value for keyword, value in how.items() if value}
        if tolerance is not None:
            keywords["tolerance"] = tolerance
        if improve is not None:
            keywords["time_limit"] = improve
        return command(*args, how=keywords, **rest)

    return wrapper
