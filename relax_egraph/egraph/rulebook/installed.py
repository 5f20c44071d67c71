"""The rules of installed packages: the entry points ``relax_egraph.rules``."""

from collections.abc import Sequence
from functools import cache
from typing import Any, cast

from relax_egraph.base.plugins import add_plugins
from relax_egraph.egraph.rulebook.book import check_rules
from relax_egraph.ir.operators import of_process
from relax_egraph.rules import RULE, Given, Rules, read

GROUP = "relax_egraph.rules"


@cache
def installed() -> Rules:
    """The rules of all plug-ins; each was read beside the book and those of other plug-ins.

    The value of an entry point is a path, a text, or what ``rules.load`` returned, or a sequence of
    them.
    """
    found = Rules(())

    def add(name: str, value: Any) -> None:
        nonlocal found
        several = cast(Sequence[Given], value if isinstance(value, list | tuple) else [value])
        for one in several:
            RULE.check("its value", one)
        files = ((path or f"{name}.egg", text) for path, text in read(several).files)
        more = Rules((*found.files, *files))
        check_rules(more, ())
        found = more

    with of_process().in_force():
        add_plugins(GROUP, add)
    return found
