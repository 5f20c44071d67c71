"""The test whether egglog works in this process: not in a fork of a process that loaded it.

egglog starts a thread when it is loaded, and waits for that thread whenever an e-graph is freed.
A child of ``fork`` has egglog's memory but not its thread, and would wait for ever.  So it runs
rules in a worker process, where rules of users run in any case.
"""

from relax_egraph.base.forks import is_inherited
from relax_egraph.egraph.bindings import EGraph
from relax_egraph.errors import SaturationError


def egglog_works() -> bool:
    """Whether e-graphs can be used in this process."""
    return not any(map(is_inherited, ("relax_egraph.egraph.bindings", "egglog.bindings")))


def new_egraph() -> EGraph:
    """An empty e-graph; raises `SaturationError` if egglog does not work in this process."""
    if not egglog_works():
        raise SaturationError(
            "egglog does not work in this process: it was forked from one that had loaded egglog, "
            "whose thread is not here; optimize, build and run work here; prove and check rules "
            'in a process that is started by "spawn", or forked before the first optimize'
        )
    return EGraph()
