"""``relax-egraph serve``: a saved model over HTTP and gRPC."""

import json
import shlex
from collections.abc import Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import click

import relax_egraph as rx
from relax_egraph.cli import options, values
from relax_egraph.cli.group import commands
from relax_egraph.errors import ExecutableError
from relax_egraph.server.limits import Limits

if TYPE_CHECKING:
    from relax_egraph.inference.signature import Signature
    from relax_egraph.server.model import Model
    from relax_egraph.server.server import Server

_MILLISECOND = 1e-3
_MOST_SHOWN = 64
"""The most elements of inputs that are written out in the example of a request."""


@commands.command("serve")
@click.argument("model", type=values.EXISTING, metavar="MODEL.rxe")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    metavar="PORT",
    help="The port to listen at, 0 for any free one.",
)
@click.option(
    "--grpc-port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Answer gRPC, too, at this port.",
)
@options.function
@options.threads
@click.option(
    "--max-wait",
    type=click.FloatRange(min=0),
    default=Limits().max_wait / _MILLISECOND,
    show_default=True,
    metavar="MS",
    help="Milliseconds that a request waits at most for others to be joined with it.",
)
@click.option(
    "--max-batch",
    type=click.IntRange(min=1),
    metavar="ROWS",
    help="The most rows that are joined, by default the end of the model's last range.",
)
@click.option(
    "--max-body",
    type=click.IntRange(min=1),
    default=Limits().max_body,
    show_default=True,
    metavar="BYTES",
    help="The largest request.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=Limits().timeout,
    show_default=True,
    metavar="S",
    help="Seconds after which a request is given up.",
)
@click.option(
    "--queue",
    type=click.IntRange(min=1),
    default=Limits().max_queue,
    show_default=True,
    metavar="COUNT",
    help="The most requests at a time; more are refused.",
)
@click.option(
    "--ray",
    "address",
    metavar="ADDRESS",
    help="Serve with Ray Serve on the cluster at ADDRESS, or on one of this machine: local.",
)
@click.option(
    "--replicas",
    type=click.IntRange(min=1),
    metavar="COUNT",
    help="With --ray, the number of processes that run the model, by default 1.",
)
def serve(
    model: Path,
    host: str,
    port: int,
    grpc_port: int | None,
    function: str,
    threads: int | None,
    max_wait: float,
    max_batch: int | None,
    max_body: int,
    timeout: float,
    queue: int,
    address: str | None,
    replicas: int | None,
) -> None:
    """Serve MODEL.rxe by KServe's V2 protocol, over HTTP and gRPC.

    It ends when it is interrupted or terminated. Requests that wait at the same time run as one.
    Health is at /v2/health/ready, counts for Prometheus at /metrics. There is no authentication:
    the server listens at this machine alone unless --host says otherwise. Needs pip install
    'relax-egraph[serve]', or relax-egraph[ray].
    """
    if model.suffix != ".rxe":
        saved = model.with_suffix(".rxe").name
        raise click.UsageError(
            f"{model} is no saved executable: relax-egraph optimize {model} -o {saved} makes one"
        )
    if replicas is not None and address is None:
        raise click.UsageError("--replicas needs --ray: without it there is one process")
    limits = Limits(max_body, queue, timeout, max_wait * _MILLISECOND, max_batch)
    if address is not None:
        _with_ray(
            address, model, function, replicas or 1, threads or 1, limits, host, port, grpc_port
        )
        return
    from relax_egraph.server.packages import GRPC, require_packages

    require_packages("relax-egraph serve")
    from relax_egraph.server.app import application
    from relax_egraph.server.listening import address_of, bound, listen
    from relax_egraph.server.start import server_of

    if grpc_port is not None:
        require_packages("relax-egraph serve --grpc-port", GRPC)
        bound(host, grpc_port).close()
    with bound(host, port) as listening, _named(model):
        server = server_of(model, function, threads, limits)
        click.echo(_greeting(address_of(listening), server.model, host, grpc_port))
        listen(application(server, beside=_grpc(server, host, grpc_port)), listening)


def _grpc(
    server: "Server", host: str, port: int | None
) -> AbstractAsyncContextManager[None] | None:
    """What answers gRPC at `port` while it is entered."""
    if port is None:
        return None
    from relax_egraph.server.grpc_service import listening

    return listening(server, host, port)


def _with_ray(
    address: str,
    model: Path,
    function: str,
    replicas: int,
    threads: int,
    limits: Limits,
    host: str,
    port: int,
    grpc_port: int | None,
) -> None:
    from relax_egraph.inference.signature import signature
    from relax_egraph.ray.cluster import connected
    from relax_egraph.ray.serving import served

    if port == 0:
        raise click.UsageError("--port 0 needs no --ray: the proxies of a cluster share a port")
    with _named(model), connected(address, num_cpus=replicas * threads):
        app = rx.serve.deployment(
            model, function, num_replicas=replicas, num_threads=threads, limits=limits
        )
        with served(app, host, port, grpc_port) as ended:
            served_model = signature(model, function, None)
            click.echo(_greeting(f"http://{host}:{port}", served_model, host, grpc_port))
            ended.wait()


@contextmanager
def _named(model: Path) -> Generator[None]:
    """Prefix errors of a damaged file with its name."""
    try:
        yield
    except ExecutableError as error:
        raise click.ClickException(f"{model}: {error}") from None


def _greeting(address: str, model: "Model | Signature", host: str, grpc_port: int | None) -> str:
    """The address, and a request that can be sent to it."""
    at = f"{address}/v2/models/{model.name}"
    ends = "ends with Ctrl-C"
    if grpc_port is not None:
        ends = f"gRPC: {host}:{grpc_port}, model {model.name}\n{ends}"
    shapes = [[e if isinstance(e, int) else 1 for e in tensor.shape] for tensor in model.inputs]
    if sum(map(prod, shapes)) > _MOST_SHOWN:
        return f"{at}\ncurl {at}\n{ends}"
    inputs = [
        {
            "name": tensor.name,
            "datatype": _datatype(tensor.dtype),
            "shape": shape,
            "data": [tensor.dtype != "bool" and 0] * prod(shape),
        }
        for tensor, shape in zip(model.inputs, shapes, strict=True)
    ]
    body = json.dumps({"inputs": inputs}, separators=(",", ":"))
    return f"{at}\ncurl {at}/infer -d {shlex.quote(body)}\n{ends}"


def _datatype(dtype: str) -> str:
    from relax_egraph.server.tensors import DATATYPES

    return DATATYPES[dtype]
