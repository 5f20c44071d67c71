"""Symbols that the match_casts of a view bind, and symbols that a choice mentions."""

from relax_egraph.egraph.node import LEAF, OPAQUE, SCALAR, Node
from relax_egraph.egraph.view import Choice, ENode, View
from relax_egraph.ir.expr import Binding, MatchCast
from relax_egraph.ir.kernel import Kernel
from relax_egraph.ir.occurrences import symbols_in, symbols_of_cast
from relax_egraph.ir.struct_info import ShapeStructInfo, symbols_of


def binds_symbols(binding: Binding) -> bool:
    """Whether `binding` may bind symbols: a match_cast that is not the check of an operator."""
    return isinstance(binding, MatchCast) and not binding.refusal


def first_casts(view: View) -> dict[str, MatchCast]:
    """The first match_cast that claims each symbol that is unknown before it.

    A symbol is known if a leaf has it, or if it is mentioned in the operands of a match_cast or in
    an earlier binding that may fail.
    """
    outside = set[str]().union(*(symbols_of(leaf.struct_info) for leaf in view.leaves))
    below = _symbols_below(view) if any(isinstance(b, MatchCast) for b in view.opaque) else {}
    casts: dict[str, MatchCast] = {}
    for key, binding in enumerate(view.opaque):
        outside |= below.get(key, frozenset()) - casts.keys()
        if isinstance(binding, MatchCast) and binds_symbols(binding):
            for name in sorted(symbols_of(binding.struct_info) - outside - casts.keys()):
                casts[name] = binding
        else:
            outside |= _symbols_in(binding) - casts.keys()
    return casts


def _symbols_below(view: View) -> dict[int, frozenset[str]]:
    """The symbols in all classes that each opaque binding depends on, by its key."""
    own = {
        c: symbols_of(eclass.struct_info).union(*(_symbols_of_node(n, view) for n in eclass.nodes))
        for c, eclass in view.classes.items()
    }
    below: dict[int, frozenset[str]] = {}
    for eclass in view.classes.values():
        for node in eclass.nodes:
            if node.op == OPAQUE:
                todo, seen = list(node.operands), set(node.operands)
                while todo:
                    new = {k for n in view.classes[todo.pop()].nodes for k in n.operands} - seen
                    seen |= new
                    todo += new
                below[node.key] = frozenset[str]().union(*(own[k] for k in seen))
    return below


def _symbols_of_node(node: ENode, view: View) -> frozenset[str]:
    if node.op == OPAQUE:
        binding = view.opaque[node.key]
        return frozenset() if isinstance(binding, MatchCast) else _symbols_in(binding)
    return node.symbols


def _symbols_in(binding: Binding) -> frozenset[str]:
    """The symbols that must be bound before `binding`, which binds none, runs."""
    if isinstance(binding, MatchCast):
        return symbols_of_cast(binding)
    return symbols_in(binding.value) | symbols_of(binding.var.struct_info)


def mentioned(choice: Choice, view: View) -> frozenset[str]:
    """The symbols that must be bound before `choice` runs."""
    match choice.how:
        case Node(op=op) if op in (LEAF, SCALAR):
            return frozenset()
        case Node(op=op) as node if op == OPAQUE:
            binding = view.opaque[node.key]
            return frozenset() if binds_symbols(binding) else _symbols_in(binding)
        case Node() as node:
            symbols = node.symbols
        case Kernel(steps=steps):
            shapes = (o for s in steps for o in s.operands if isinstance(o, ShapeStructInfo))
            symbols = frozenset[str]().union(*map(symbols_of, shapes))
    infos = (view.classes[o].struct_info for o in choice.outputs)
    return symbols.union(*map(symbols_of, infos))
