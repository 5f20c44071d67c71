"""The methods of extraction from a serialized e-graph, by name."""

from typing import Literal, TypeAlias, get_args

Method: TypeAlias = Literal["ilp", "greedy-dag", "tree"]
"""``ilp`` is exact; ``tree`` minimizes tree cost, as most libraries do."""

METHODS: tuple[Method, ...] = get_args(Method)
