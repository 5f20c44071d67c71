"""Sums over parts and places in parts, as sums over all places.

``Σ_r Σ_j f(r · n + j)`` over ``j < n`` is ``Σ_k f(k)``: where two variables of a sum are seen only
as one position, a variable of its range takes their place.
"""

from dataclasses import replace
from itertools import permutations

from relax_egraph.prove.polynomial import Index, variable
from relax_egraph.prove.sums import Term, names_of_term, replaced_term


def joined(t: Term) -> Term:
    """`t` with one variable for each two that are seen only as one position."""
    for outer, inner in permutations(t.binders, 2):
        position = Index(f"{outer.name}&{inner.name}", outer.extent * inner.extent)
        within = variable(position) - variable(outer) * inner.extent
        moved = replace(replaced_term(t, {inner.name: within}), binders=())
        if outer.name not in names_of_term(moved):
            others = tuple(b for b in t.binders if b not in (outer, inner))
            return joined(replace(moved, binders=(*others, position)))
    return t
