"""The end of a conversion: results of ``main``, and the module."""

from collections.abc import Sequence

from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.expr import Expr, Tuple
from relax_egraph.ir.module import IRModule
from relax_egraph.passes import convert_to_dataflow
from relax_egraph.passes.drop_proven_checks import drop_proven_checks


def emit_results(bb: BlockBuilder, results: Sequence[Expr]) -> None:
    """Make `results` those of the open function: a single one itself, several as a tuple."""
    bb.emit_func_output(results[0] if len(results) == 1 else Tuple(tuple(results)))


def module_of(bb: BlockBuilder) -> IRModule:
    """What `bb` built, in dataflow blocks, without checks that are proven."""
    return drop_proven_checks(convert_to_dataflow(1)(bb.get()))
