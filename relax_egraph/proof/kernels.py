"""Kernels as terms: from a load of each operand to a store of each result.

They are proven of the program without kernels.  Each operator can be lowered, by the rule that is
generated for it or, if it is no step of other kernels, by extraction; and what a kernel stores
and another loads can stay within one.
"""

from collections.abc import Iterator, Sequence
from typing import cast

from relax_egraph.egraph.rulebook.generate import COMMUTATIVE
from relax_egraph.egraph.view import LOAD, STORE
from relax_egraph.ir.kernel import Kernel
from relax_egraph.ir.struct_info import ShapeStructInfo
from relax_egraph.proof.forest import Forest
from relax_egraph.proof.term import Operand, Term, Terms, canonical, mapped, post_order


def kernel_terms(terms: Terms, kernel: Kernel, inputs: Sequence[Term]) -> Iterator[Term]:
    """What `kernel` stores, given what its `inputs` are."""
    values = [terms.make(LOAD, (tensor,), sort="kernel") for tensor in inputs]

    def operand(of: int | tuple[int, ...] | ShapeStructInfo) -> Operand:
        if isinstance(of, tuple):
            return tuple(values[k] for k in of)
        return values[of] if isinstance(of, int) else canonical(of)

    for step in kernel.steps:
        left_out = (None,) * (len(step.op.operands) - len(step.operands))
        children = (*map(operand, step.operands), *left_out)
        values.append(terms.make(step.op.name, children, step.attrs, sort="kernel"))
    for output in kernel.outputs:
        yield _stored(terms, values[output])


def without_kernels(terms: Terms, program: Term) -> Term:
    """`program` with the operators of its kernels on tensors."""
    now: dict[Term, Term] = {}
    for term in post_order(program):
        children = [mapped(child, now.__getitem__) for child in term.children]
        if term.op in (LOAD, STORE):
            now[term] = cast(Term, children[0])
        else:
            sort = "tensor" if term.sort == "kernel" else term.sort
            now[term] = terms.make(term.op, children, term.attrs, term.key, term.scalar, sort)
    return now[program]


def lower(forest: Forest, terms: Terms, program: Term) -> None:
    """Add to `forest` what makes the kernels of `program`.

    A kernel of an operator that commutes is made of it with its operands in either order.
    """
    for term in post_order(program):
        if term.sort != "kernel" or term.op == LOAD:
            continue
        tensors = [mapped(child, lambda t: _stored(terms, t)) for child in term.children]
        loads = [mapped(child, lambda t: _loaded(terms, t)) for child in tensors]
        made, orders = _stored(terms, terms.over(term, loads)), [tensors]
        if term.op in COMMUTATIVE:
            first, second, *rest = tensors
            orders.append([second, first, *rest])
        for operands in orders:
            forest.unite(terms.make(term.op, operands, term.attrs), made, f"lower-{term.op}")
        forest.unite(_loaded(terms, _stored(terms, term)), term, "load-of-store")


def _stored(terms: Terms, value: Term) -> Term:
    return next(value.terms) if value.op == LOAD else terms.make(STORE, (value,))


def _loaded(terms: Terms, tensor: Term) -> Term:
    return terms.make(LOAD, (tensor,), sort="kernel")
