"""Builds the machine and the arguments for a call of a model."""

import click

import relax_egraph as rx
from relax_egraph.base.progress import step
from relax_egraph.cli.arguments import (
    Arguments,
    Inputs,
    SymbolSizes,
    arguments_in,
    arguments_of,
)
from relax_egraph.cli.model import How, ModelFile

_AS_USUAL: How = {}


def machine_for(
    model: ModelFile,
    function: str,
    inputs: Inputs,
    sizes: SymbolSizes,
    threads: int | None,
    how: How = _AS_USUAL,
) -> tuple["rx.VirtualMachine", Arguments]:
    """A machine for `model`, and the arguments of `function` from the command line.

    A program is optimized for the sizes of its arguments, unless `how` has hints.
    """
    if model.is_executable:
        if how:
            raise click.UsageError(f"{model} is an executable: it has been optimized")
        machine = rx.VirtualMachine(model.executable(), num_threads=threads)
        return machine, arguments_of(machine, function, inputs, sizes)
    module = model.module()
    arguments = arguments_in(module, function, inputs, sizes)
    hints = {**arguments.sizes, **how.get("hints", {})}
    best = model.optimized_as(module, {**how, "hints": hints}).module
    with step("building"):
        executable = rx.build(best)
    return rx.VirtualMachine(executable, num_threads=threads), arguments
