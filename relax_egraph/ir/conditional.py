"""The struct info of a conditional's value."""

from relax_egraph.ir.agreement import bare_symbols, common, free_symbols, in_scope
from relax_egraph.ir.expr import MatchCast, SeqExpr
from relax_egraph.ir.struct_info import StructInfo
from relax_egraph.ir.walk import bindings_of


def branch_result(name: str, is_true: bool) -> str:
    """The name, in messages, of a branch's result in the conditional that defines `name`."""
    return f"{name}_{'true' if is_true else 'false'}"


def result_info(true: SeqExpr, false: SeqExpr, before: StructInfo | None = None) -> StructInfo:
    """The struct info that both branches imply, without the symbols that they bind.

    A cast in a branch may also compare a symbol that is bound outside: symbols in `before`, the
    struct info that is known without the branches, stay.
    """
    bound = set[str]()
    for seq in (true, false):
        for binding in bindings_of(seq):
            if isinstance(binding, MatchCast):
                bound |= bare_symbols(binding.struct_info)
    if before is not None:
        bound -= free_symbols(before)
    info = common(true.struct_info, false.struct_info)
    return in_scope(info, free_symbols(info) - bound)
