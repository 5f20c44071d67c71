"""Kernels as terms: from a load of each operand to a store of each result.

They are proven of the program without kernels.  Each operator can be lowered, by the rule that is
generated for it or, if it is no step of other kernels, by extraction; and what a kernel stores
and another loads can stay within one.
"""

from collections.abc import Iterator, Sequence

from relax_egraph.egraph.node import LOAD, STORE, Node
from relax_egraph.egraph.rulebook.generate import COMMUTATIVE
from relax_egraph.ir.kernel import Kernel
from relax_egraph.ir.struct_info import ShapeStructInfo
from relax_egraph.proof.forest import Forest
from relax_egraph.proof.term import Operand, Term, Terms, canonical, post_order


def kernel_terms(terms: Terms, kernel: Kernel, inputs: Sequence[Term]) -> Iterator[Term]:
    """What `kernel` stores, given what its `inputs` are."""
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
    """`program` with the operators of its kernels on tensors."""
    now: dict[Term, Term] = {}
    for term in post_order(program):
        if term.op in (LOAD, STORE):
            now[term] = now[term.operands[0]]
        else:
            now[term] = terms.term(term.over(now.__getitem__))
    return now[program]


def lower(forest: Forest, terms: Terms, program: Term) -> None:
    """Add to `forest` what makes the kernels of `program`.

    A kernel of an operator that commutes is made of it with its operands in either order.
    """
    for term in post_order(program):
        if term.sort != "kernel" or term.op == LOAD:
            continue
        tensors = term.over(lambda t: _stored(terms, t))
        loads = tensors.over(lambda t: _loaded(terms, t))
        made, orders = _stored(terms, terms.term(loads)), [tensors.children]
        if term.op in COMMUTATIVE:
            first, second, *rest = tensors.children
            orders.append((second, first, *rest))
        for children in orders:
            forest.unite(terms.over(term, children), made, f"lower-{term.op}")
        forest.unite(_loaded(terms, _stored(terms, term)), term, "load-of-store")


def _stored(terms: Terms, value: Term) -> Term:
    return value.operands[0] if value.op == LOAD else terms.term(Node(STORE, (value,)))


def _loaded(terms: Terms, tensor: Term) -> Term:
    return terms.term(Node(LOAD, (tensor,)))
