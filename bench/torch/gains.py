"""What rules save in networks and parts of them, by the cost model: each is left out in turn.

Run from the top of the repository: ``python -m bench.torch.gains [WORDS]``, words being names of
programs or rules.  Costs are those of the reference machine at the sizes of the example.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from rich.table import Table

import relax_egraph as rx
from bench.census import census
from bench.output import console
from bench.torch import parts
from bench.torch.zoo import zoo


@dataclass(frozen=True, slots=True)
class Program:
    """A module, and the rules that it is here for."""

    name: str
    build: Callable[[], rx.IRModule]
    rules: tuple[str, ...]


def _of_torch(built: Callable[[], parts.Built]) -> Callable[[], rx.IRModule]:
    def module() -> rx.IRModule:
        network, inputs = built()
        return rx.from_torch(torch.export.export(network.eval(), tuple(inputs)))

    return module


def _of_zoo(name: str) -> Callable[[], rx.IRModule]:
    (model,) = (m for m in zoo() if m.name == name)
    return _of_torch(lambda: (model.build(), model.tensors(model.sizes[0])))


def programs() -> tuple[Program, ...]:
    """Networks by their names, and parts of networks."""
    rows = ("slice-of-unary", "slice-of-binary", "slice-of-matmul", "slice-of-layer-norm")
    adapters = ("add-of-matmuls-of-constants", "add-of-matmul-beside-bias")
    of_torch = {
        "wav2vec2 classifier": (parts.sound_classifier, ("sum-of-matmul", "mean-of-shifted")),
        "gpt-oss": (parts.attention_with_sinks, ("softmax-of-shifted",)),
        "sentence embedding": (parts.sentence_embedding, ("reduction-of-broadcast",)),
        "low-rank adapters": (parts.adapters, adapters),
        "pool by attention": (parts.attention_pool, ("matmul-of-broadcast",)),
        "rotary angles": (parts.rotary_angles, ("matmul-of-one-product",)),
        "gated cell": (parts.gated_cell, ("add-of-shares",)),
        "two losses": (parts.two_losses, ("add-of-means",)),
    }
    return (
        Program("vit_b_16", _of_zoo("vit_b_16"), rows),
        *(Program(name, _of_torch(built), rules) for name, (built, rules) in of_torch.items()),
    )


def rows_of(program: Program) -> Iterator[tuple[str, ...]]:
    """For each of its rules: the costs and kernels without it and with it."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    with torch.no_grad():
        module = program.build()
    best = rx.explain(module)
    kernels = census(best.module).kernels.total()
    for rule in program.rules:
        other = rx.explain(module, without=[rule])
        yield (
            program.name,
            rule,
            str(best.rules.get(rule, 0)),
            f"{other.cost * 1e6:.2f} → {best.cost * 1e6:.2f}",
            f"{other.cost / best.cost:.4f}",
            f"{census(other.module).kernels.total()} → {kernels}",
        )


def main() -> int:
    """Print the table; the exit status is 1 if a rule saves nothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    words: set[Any] = set(options.words)
    table = Table("program", "rule", "matches", "cost, µs", "ratio", "kernels")
    saved = True
    for program in programs():
        if words and not words & {program.name, *program.rules}:
            continue
        for row in rows_of(program):
            table.add_row(*row)
            saved &= float(row[4]) > 1
    console().print(table)
    return int(not saved)


if __name__ == "__main__":
    raise SystemExit(main())
