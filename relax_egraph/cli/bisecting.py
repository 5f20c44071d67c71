"""Searches among rules, with their tries on the terminal."""

from collections.abc import Callable
from typing import TypeVar

from relax_egraph.cli.group import Unusable
from relax_egraph.cli.progress import step
from relax_egraph.errors import RelaxEgraphError

Found = TypeVar("Found")


def bisecting(find: Callable[[Callable[[int, int], None]], Found]) -> Found:
    """The result of `find`, with progress on the terminal; a ``ValueError`` is a usage error."""
    with step("bisecting") as tell:
        try:
            return find(lambda number, rules: tell(f"bisecting: try {number}, {rules} rules"))
        except RelaxEgraphError:
            raise
        except ValueError as error:
            raise Unusable(str(error)) from None
