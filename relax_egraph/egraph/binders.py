"""Which symbols a view's match_casts bind, and which a choice mentions, so that it comes after."""

from relax_egraph.egraph.view import LEAF, OPAQUE, SCALAR, Choice, ENode, View
from relax_egraph.ir.expr import MatchCast, PrimValue
from relax_egraph.ir.kernel import Kernel
from relax_egraph.ir.occurrences import symbols_in
from relax_egraph.ir.struct_info import ShapeStructInfo, symbols_of


def first_casts(view: View) -> dict[str, MatchCast]:
    """The first match_cast that claims each symbol that no leaf has."""
    outside = frozenset[str]().union(*(symbols_of(leaf.struct_info) for leaf in view.leaves))
    casts = [b for b in view.opaque if isinstance(b, MatchCast)]
    return {n: cast for cast in reversed(casts) for n in symbols_of(cast.struct_info) - outside}


def mentioned(choice: Choice, view: View) -> frozenset[str]:
    """The symbols that must be bound before the choice is made."""
    match choice.how:
        case ENode(op=op) if op in (LEAF, SCALAR):
            return frozenset()
        case ENode(op=op, key=key) if op == OPAQUE:
            binding = view.opaque[key]
            if isinstance(binding, MatchCast):
                return frozenset()
            return symbols_in(binding.value) | symbols_of(binding.var.struct_info)
        case ENode(children=children):
            operands = [c for c in children if isinstance(c, ShapeStructInfo)]
            operands += [c.struct_info for c in children if isinstance(c, PrimValue)]
        case Kernel(steps=steps):
            operands = [o for s in steps for o in s.operands if isinstance(o, ShapeStructInfo)]
    infos = (view.classes[o].struct_info for o in choice.outputs)
    return frozenset[str]().union(*map(symbols_of, (*operands, *infos)))
