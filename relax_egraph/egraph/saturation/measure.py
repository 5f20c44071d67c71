"""How large an e-graph is."""

from collections.abc import Mapping

from relax_egraph.egraph.bindings import PrintAllFunctionsSize


def sizes_of(outputs: list[object]) -> Mapping[str, int]:
    """The number of rows of each function: what ``(print-size)``, the last command, put out."""
    last = outputs[-1]
    return dict(last.sizes) if isinstance(last, PrintAllFunctionsSize) else {}


def nodes_of(sizes: Mapping[str, int]) -> int:
    """The number of nodes of operators, leaves among them."""
    return sum(n for name, n in sizes.items() if name.startswith(("R.", "K.", "Leaf", "Opaque")))
