"""The options that several commands have, each under one name."""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from relax_egraph.cli import values
from relax_egraph.cli.model import ModelFile

Command = TypeVar("Command", bound=Callable[..., Any])

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
function = click.option(
    "--function", default="main", show_default=True, metavar="NAME", help="Which function."
)
inputs = click.option(
    "--input",
    "inputs",
    multiple=True,
    type=values.array,
    metavar="NAME=FILE.npy",
    help="An argument.",
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
    help="Threads that kernels use, by default all.",
)
machine = click.option(
    "--machine",
    type=values.machine,
    metavar="FILE|calibrated",
    help="The machine to compare on, as calibrate saves it.",
)
rules = click.option(
    "--rules",
    multiple=True,
    type=values.EXISTING,
    metavar="FILE",
    help="A rule file beside the rule book.",
)
processes = click.option(
    "--processes",
    type=click.IntRange(1, 256),
    default=os.cpu_count() or 1,
    metavar="COUNT",
    help="Processes that work at once, by default one a core.",
)


def output(what: str, *, required: bool = False) -> Callable[[Command], Command]:
    """``--output``, where `what` goes."""
    return click.option(
        "-o", "--output", type=values.output, metavar="FILE", required=required, help=what
    )


def model(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument MODEL and its ``--shape``: the command gets a `ModelFile`."""

    @click.argument("model", type=values.EXISTING)
    @click.option(
        "--shape",
        "shapes",
        multiple=True,
        type=values.shape,
        metavar="NAME=EXTENTS",
        help="The shape of an ONNX model's input, such as x=1,n,224.",
    )
    @wraps(command)
    def given(*args: Any, model: Any, shapes: Any, **rest: Any) -> Any:
        return command(*args, model=ModelFile(model, dict(shapes)), **rest)

    return given


def optimization(command: Callable[..., Any]) -> Callable[..., Any]:
    """How to optimize: the command gets keywords of `relax_egraph.optimize` as `how`."""

    @rules
    @click.option("--without", multiple=True, metavar="NAME", help="A family or rule to leave out.")
    @click.option("--fast-math", is_flag=True, help="Use rules that only real numbers obey, too.")
    @click.option(
        "--tolerance",
        type=float,
        metavar="SHARE",
        help="How far results may be off, by weights in fewer bits and the like.",
    )
    @click.option(
        "--assume",
        multiple=True,
        metavar="CONDITION",
        help='What holds of symbols, such as "s % 8 == 0".',
    )
    @click.option(
        "--hint",
        "hints",
        multiple=True,
        type=values.size,
        metavar="NAME=SIZE",
        help="The size of a symbol to compare programs at.",
    )
    @click.option(
        "--variant",
        "variants",
        multiple=True,
        type=values.variant,
        metavar="SYMBOL=RANGES",
        help="A program for each range of a symbol, such as s=1,2:64,65:.",
    )
    @machine
    @wraps(command)
    def given(
        *args: Any,
        rules: Any,
        without: Any,
        fast_math: Any,
        tolerance: Any,
        assume: Any,
        hints: Any,
        variants: Any,
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
        said = {keyword: value for keyword, value in how.items() if value}
        if tolerance is not None:
            said["tolerance"] = tolerance
        return command(*args, how=said, **rest)

    return given
