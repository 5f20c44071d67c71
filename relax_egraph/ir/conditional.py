"""What is known of the value of a conditional."""

from relax_egraph.ir.agreement import bare_symbols, common, free_symbols, in_scope
from relax_egraph.ir.expr import MatchCast, SeqExpr
from relax_egraph.ir.struct_info import StructInfo
from relax_egraph.ir.walk import bindings_of


def branch_result(name: str, is_true: bool) -> str:
    """What messages call the result of a branch, where the value of the conditional is `name`."""
    return f"{name}_{'true' if is_true else 'false'}"


def result_info(true: SeqExpr, false: SeqExpr, before: StructInfo | None = None) -> StructInfo:
    """What both branches imply, without the symbols that are bound in them.

    A cast in a branch may also compare a symbol that is bound outside: of these, the ones that
    are in `before`, what was known so far, stay.
    """
    told = set[str]()
    for seq in (true, false):
        for binding in bindings_of(seq):
            if isinstance(binding, MatchCast):
                told |= bare_symbols(binding.struct_info)
    if before is not None:
        told -= free_symbols(before)
    info = common(true.struct_info, false.struct_info)
    return in_scope(info, free_symbols(info) - told)
