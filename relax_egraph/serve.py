"""Saved models over HTTP, by KServe's V2 protocol: ``rx.serve``.

* `deployment`: an application of Ray Serve, ``serve.run(rx.serve.deployment("model.rxe"))``
* `application`: an ASGI application, ``uvicorn.run(rx.serve.application("model.rxe"))``
* `Limits`: what a server takes on

``relax-egraph serve model.rxe`` runs either with one command.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from relax_egraph.base.parameters import NAME, PATH, THREADS, instance, optional, takes
from relax_egraph.ray.serving import deployment as deployment
from relax_egraph.server.limits import Limits as Limits
from relax_egraph.server.packages import require_packages

if TYPE_CHECKING:
    from starlette.applications import Starlette


@takes(
    path=PATH,
    function=NAME,
    num_threads=optional(THREADS),
    limits=instance("an rx.serve.Limits", Limits),
)
def application(
    path: str | Path,
    function: str = "main",
    *,
    num_threads: int | None = None,
    limits: Limits = Limits(),  # noqa: B008  (frozen)
) -> "Starlette":
    """The ASGI application that serves `function` of the saved model at `path`.

    Its kernels run on `num_threads` threads, by default all.  Raises ``ImportError`` without the
    packages of ``relax-egraph[serve]``, `ExecutableError` for a damaged file, `UnknownFunction`.
    """
    require_packages("rx.serve.application")
    from relax_egraph.server.app import application as application_of
    from relax_egraph.server.start import server_of

    return application_of(server_of(path, function, num_threads, limits))
