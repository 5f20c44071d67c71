"""Stateful calls in three steps: set arguments, run the function, get the result."""

import threading
from typing import Any

from relax_egraph.base.parameters import NAME
from relax_egraph.errors import RunError
from relax_egraph.vm.entries import BoundCall


class State(threading.local):
    """The arguments and results of stateful calls by function, local to each thread."""

    def __init__(self) -> None:
        self.inputs: dict[str, BoundCall] = {}
        self.outputs: dict[str, Any] = {}

    def input(self, name: str) -> BoundCall:
        """The arguments of `name` in this thread; raises `RunError` if there are none."""
        NAME.check("name", name)
        if name not in self.inputs:
            raise RunError(f"function {name!r} has no arguments yet in this thread: use set_input")
        return self.inputs[name]

    def output(self, name: str) -> Any:
        """The result of `name` in this thread; raises `RunError` if it did not run."""
        NAME.check("name", name)
        if name not in self.outputs:
            raise RunError(
                f"function {name!r} has no result yet in this thread: use invoke_stateful"
            )
        return self.outputs[name]
