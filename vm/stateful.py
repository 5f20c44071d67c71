"""Calls in three steps: arguments are set, the function runs, its result is asked for."""

import threading
from typing import Any

from relax_egraph.base.parameters import NAME
from relax_egraph.errors import RunError
from relax_egraph.vm.entries import Given


class State(threading.local):
    """What was set and what came of it, by the name of the function: for each thread its own."""

    def __init__(self) -> None:
        self.inputs: dict[str, Given] = {}
        self.outputs: dict[str, Any] = {}

    def input(self, name: str) -> Given:
        """What this thread has set for `name`; raises `RunError` if nothing."""
        NAME.check("name", name)
        if name not in self.inputs:
            raise RunError(f"function {name!r} has no arguments yet in this thread: use set_input")
        return self.inputs[name]

    def output(self, name: str) -> Any:
        """What `name` returned in this thread; raises `RunError` if it did not run."""
        NAME.check("name", name)
        if name not in self.outputs:
            raise RunError(
                f"function {name!r} has no result yet in this thread: use invoke_stateful"
            )
        return self.outputs[name]
