"""From a saved model to a server of it."""

from collections.abc import Mapping
from pathlib import Path

from relax_egraph.inference.model import Model
from relax_egraph.server.limits import Limits
from relax_egraph.server.server import Server


def server_of(
    path: str | Path,
    function: str,
    num_threads: int | None,
    limits: Limits,
    labels: Mapping[str, str] | None = None,
) -> Server:
    """A server of `function` of the saved model at `path`; `labels` are those of its counts.

    The model runs a few times here, so that its first request is as fast as the others.  Raises
    what `Model` raises.
    """
    return Server(Model(path, function, num_threads=num_threads), limits, labels or {})
