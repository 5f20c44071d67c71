"""The size of an e-graph."""

from collections.abc import Mapping

from relax_egraph.egraph.bindings import PrintAllFunctionsSize


def sizes_of(outputs: list[object]) -> Mapping[str, int]:
    """The number of rows of each table, from the output of the last command, ``(print-size)``."""
    last = outputs[-1]
    return dict(last.sizes) if isinstance(last, PrintAllFunctionsSize) else {}


def nodes_of(sizes: Mapping[str, int]) -> int:
    """The number of nodes of operators, leaves among them."""
    return sum(n for name, n in sizes.items() if name.startswith(("R.", "K.", "Leaf", "Opaque")))
