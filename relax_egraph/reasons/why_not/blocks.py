"""The regions of a module's dataflow blocks, with the names of their values."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from relax_egraph.egraph.encoding.crossing import with_channels_last
from relax_egraph.egraph.encoding.encode import encode
from relax_egraph.egraph.encoding.regions import regions_of
from relax_egraph.egraph.encoding.signature import signature
from relax_egraph.egraph.view import ClassId, View
from relax_egraph.ir.expr import DataflowBlock, DataflowVar, Function, If, SeqExpr, VarBinding
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.refusals import Refusals


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A region of `function`; `variables` maps names of the program to classes of `view`."""

    function: str
    definition: Function
    view: View
    variables: Mapping[str, ClassId]


def parts_in(module: IRModule) -> Iterator[Part]:
    """The regions of all dataflow blocks that are optimized, in order."""
    refusals = Refusals(module)
    for name, function in module.relax_functions():
        if function.attrs.get("primitive"):
            continue
        for block in _blocks(function.body):
            outputs = [b.var for b in block.bindings if not isinstance(b.var, DataflowVar)]
            refusing = frozenset(refusals.among(block.bindings))
            regions = regions_of(block.bindings, outputs, refusing=refusing)
            for region in with_channels_last(regions, outputs):
                encoded = encode(region.bindings, region.outputs, refusing)
                variables = {var.name: number for var, number in encoded.origin.items()}
                yield Part(name, function, encoded.view, variables)


def bound_in(definition: Function) -> Iterator[str]:
    """The names of the variables in the dataflow blocks of a function, in order."""
    for block in _blocks(definition.body):
        yield from (binding.var.name for binding in block.bindings)


def different(parts: Sequence[Part], names: Mapping[Part, Sequence[str]]) -> list[tuple[Part, int]]:
    """The distinct `parts`, each with its number of copies, for which the answer is the same.

    Copies agree also in the values of `names`, the targets of the question.
    """
    kinds = [
        (
            signature(part.view),
            part.definition.attrs.get("tolerance"),
            tuple(part.variables[name] for name in names.get(part, ())),
        )
        for part in parts
    ]
    uses = Counter(kinds)
    first = {kind: part for kind, part in zip(reversed(kinds), reversed(parts), strict=True)}
    return [(first[kind], count) for kind, count in uses.items()]


def _blocks(body: SeqExpr) -> Iterator[DataflowBlock]:
    for block in body.blocks:
        if isinstance(block, DataflowBlock):
            yield block
            continue
        for binding in block.bindings:
            if isinstance(binding, VarBinding) and isinstance(binding.value, If):
                yield from _blocks(binding.value.true_branch)
                yield from _blocks(binding.value.false_branch)
