"""Kernels as terms: loads of operands, operators, and stores of results.

They are proven equal to the program without kernels.  Each operator can be lowered, by its
generated rule or, if it is never fused, by extraction.  A store of one kernel and a load of
another cancel when the kernels are fused.
"""

from collections.abc import Iterator, Sequence

from relax_egraph.egraph.node import LOAD, STORE, Node
from relax_egraph.egraph.rulebook.generate import COMMUTATIVE
from relax_egraph.ir.kernel import Kernel
from relax_egraph.ir.struct_info import ShapeStructInfo
from relax_egraph.proof.forest import Forest
from relax_egraph.proof.term import Operand, Term, Terms, canonical, post_order


def kernel_terms(terms: Terms, kernel: Kernel, inputs: Sequence[Term]) -> Iterator[Term]:
    """The terms that `kernel` stores, over the terms of its `inputs`."""
    values = [_loaded(terms, tensor) for tensor in inputs]

    def operand(of: int | tuple[int, ...] | ShapeStructInfo) -> Operand:
        if isinstance(of, tuple):
            return tuple(values[k] for k in of)
        return values[of] if isinstance(of, int) else of

    for step in kernel.steps:
        left_out = (None,) * (len(step.op.operands) - len(step.operands))
        children = (*map(operand, step.operands), *left_out)
        values.append(terms.term(canonical(Node(step.op.name, children, step.attrs))))
    for output in kernel.outputs:
        yield _stored(terms, values[output])


def without_kernels(terms: Terms, program: Term) -> Term:
    """`program` without loads and stores, with all operators on tensors."""
    now: dict[Term, Term] = {}
    for term in post_order(program):
        if term.op in (LOAD, STORE):
            now[term] = now[term.operands[0]]
        else:
            now[term] = terms.term(term.over(now.__getitem__))
    return now[program]


def lower(forest: Forest, terms: Terms, program: Term) -> None:
    """Add the equations of lowering and fusion for the kernels of `program` to `forest`.

    A commutative operator equals its kernel in either order of operands.
    """
    for term in post_order(program):
        if term.sort != "kernel" or term.op == LOAD:
            continue
        tensors = term.over(lambda t: _stored(terms, t))
        loads = tensors.over(lambda t: _loaded(terms, t))
        kernel, orders = _stored(terms, terms.term(loads)), [tensors.children]
        if term.op in COMMUTATIVE:
            first, second, *rest = tensors.children
            orders.append((second, first, *rest))
        for children in orders:
            forest.unite(terms.over(term, children), kernel, f"lower-{term.op}")
        forest.unite(_loaded(terms, _stored(terms, term)), term, "load-of-store")


def _stored(terms: Terms, value: Term) -> Term:
    return value.operands[0] if value.op == LOAD else terms.term(Node(STORE, (value,)))


def _loaded(terms: Terms, tensor: Term) -> Term:
    return terms.term(Node(LOAD, (tensor,)))
