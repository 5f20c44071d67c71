"""Use-definition chains: the users of each variable."""

from relax_egraph.ir.expr import Block, Expr, Var
from relax_egraph.ir.walk import post_order_visit


def udchain(block: Block) -> dict[Var, tuple[Var, ...]]:
    """For each variable that `block` defines or reads, the variables it is used to compute.

    In order of first appearance; users in order of definition, each once.  A variable without
    users is read by nothing in the block: it is an output, or is not needed.
    """
    users: dict[Var, dict[Var, None]] = {}
    for binding in block.bindings:

        def note(expr: Expr, user: Var = binding.var) -> None:
            if isinstance(expr, Var):
                users.setdefault(expr, {})[user] = None

        post_order_visit(binding.value, note)
        users.setdefault(binding.var, {})
    return {var: tuple(using) for var, using in users.items()}
