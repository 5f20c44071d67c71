"""A saved model as an application of Ray Serve."""

import logging
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from relax_egraph.base.parameters import COUNT, NAME, PATH, THREADS, instance, takes
from relax_egraph.inference.signature import signature
from relax_egraph.ray.cluster import ray_module, require_ray
from relax_egraph.server.limits import Limits

Application = Any
"""A ``ray.serve.Application``."""

_ROOM = 16
"""Requests that a replica gets beyond its limit: they are refused by it, with its sentence, and
its health and metrics are asked by such, too."""

_HEALTH_SECONDS = 5
_LOG: Any = {"log_level": "WARNING", "enable_access_log": False}


@takes(
    path=PATH,
    function=NAME,
    num_replicas=COUNT,
    num_threads=THREADS,
    limits=instance("an rx.serve.Limits", Limits),
)
def deployment(
    path: str | Path,
    function: str = "main",
    *,
    num_replicas: int = 1,
    num_threads: int = 1,
    limits: Limits = Limits(),  # noqa: B008  (frozen)
) -> Application:
    """The application that serves `function` of the saved model at `path`: ``serve.run`` takes it.

    Each of the `num_replicas` processes maps the file, so that those of one machine share its
    weights, takes `num_threads` processors, and keeps to `limits` of its own.  The file has to be
    at this path on every machine.  Raises ``ImportError`` without Ray, `ExecutableError` for a
    damaged file, `UnknownFunction`.
    """
    require_ray("rx.serve.deployment")
    file = Path(path).resolve()
    name = signature(file, function, None).name
    serve = ray_module("ray.serve")

    deployed = serve.deployment(
        name=name.replace("#", "_"),
        num_replicas=num_replicas,
        max_ongoing_requests=limits.max_queue + _ROOM,
        ray_actor_options={"num_cpus": num_threads},
        health_check_period_s=_HEALTH_SECONDS,
        health_check_timeout_s=limits.timeout + _HEALTH_SECONDS,
        graceful_shutdown_timeout_s=limits.timeout,
    )
    replica: Any = deployed(serve.ingress()(Replica))
    return replica.bind(str(file), function, num_threads, limits)


@contextmanager
def served(
    application: Application, host: str, port: int, grpc_port: int | None = None
) -> Generator[Event]:
    """Serve `application` at `host` and `port` of the cluster that this process uses.

    gRPC is answered at `grpc_port`, at all addresses of a machine, as Ray does.  Yields what is set
    by SIGINT or SIGTERM; in the end, requests that run are finished.  Raises ``OSError`` if a port
    of this machine is in use.
    """
    serve = ray_module("ray.serve")

    from relax_egraph.server.listening import bound

    bound(host, port).close()
    grpc: dict[str, Any] = {}
    if grpc_port is not None:
        bound(host, grpc_port).close()
        grpc = {
            "port": grpc_port,
            "grpc_servicer_functions": [f"{__name__}.{add_service.__name__}"],
        }
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    ended = Event()

    def end(*_: object) -> None:
        ended.set()

    handlers = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        serve.start(
            http_options={"host": host, "port": port}, grpc_options=grpc, logging_config=_LOG
        )
        serve.run(application, logging_config=_LOG)
        yield ended
    finally:
        serve.shutdown()
        for number, handler in handlers.items():
            signal.signal(number, handler)


def add_service(_: object, server: Any) -> None:
    """Add the methods of the V2 protocol to a gRPC `server` of Ray Serve, which names replicas."""
    from relax_egraph.server.grpc_service import handlers

    server.add_generic_rpc_handlers((handlers(lambda _: None),))  # Serve puts its own there


def _by_grpc(name: str) -> Any:
    """A method of a replica that answers the method `name` of the protocol."""

    async def respond(replica: "Replica", data: bytes, grpc_context: Any) -> Any:
        from relax_egraph.server.grpc_service import answer

        message, refusal = await answer(name, replica.server, data)
        if refusal is not None:  # raised, it would be a failure in the log of Ray
            code, sentence = refusal
            grpc_context.set_code(code)
            grpc_context.set_details(sentence)
        return message

    respond.__name__ = name
    return respond


class Replica:
    """One of the processes that serve a model."""

    # Ray Serve calls the methods of the protocol by their names.
    ServerLive = _by_grpc("ServerLive")
    ServerReady = _by_grpc("ServerReady")
    ServerMetadata = _by_grpc("ServerMetadata")
    ModelReady = _by_grpc("ModelReady")
    ModelMetadata = _by_grpc("ModelMetadata")
    ModelInfer = _by_grpc("ModelInfer")

    def __init__(self, path: str, function: str, num_threads: int, limits: Limits) -> None:
        serve = ray_module("ray.serve")

        from relax_egraph.server.start import server_of

        self._context = serve.get_replica_context()
        labels = {"replica": self._context.replica_tag}
        self.server = server_of(path, function, num_threads, limits, labels)

    def __serve_build_asgi_app__(self) -> Any:
        """The ASGI application; Ray Serve asks for it."""
        from relax_egraph.server.app import application

        return application(self.server, self._all_counts)

    def counts(self) -> bytes:
        """What this replica counted."""
        return self.server.metrics.text()

    async def _all_counts(self) -> bytes:
        """What all replicas counted: a request for it reaches any of them."""
        serve = ray_module("ray.serve")

        from relax_egraph.server.metrics import merged

        context = self._context
        handle = serve.get_deployment_handle(context.deployment, context.app_name)
        return merged(await handle.broadcast("counts").results_async())
