"""A server of this process: listens at a port until it is interrupted or terminated."""

import os
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import uvicorn

_CONNECTIONS_WAITING = 2048
_SECONDS_TO_FINISH = 30


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens at `host` and `port`, 0 for any free one.

    Raises ``OSError``, whose message names both, if that cannot be.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_CONNECTIONS_WAITING)
    except OSError as error:
        code = error.errno or 0
        reason = os.strerror(code) if code > 0 else error.strerror  # < 0: of a host's name
        raise OSError(code, f"cannot listen at port {port} of {host}: {reason}") from None


def address_of(listening: socket.socket) -> str:
    """``http://127.0.0.1:8000``."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def listen(app: Any, listening: socket.socket) -> None:
    """Serve the ASGI application `app` until SIGINT or SIGTERM; what runs then is finished."""
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_SECONDS_TO_FINISH,
    )
    with _quiet(signal.SIGINT, signal.SIGTERM):
        uvicorn.Server(config).run(sockets=[listening])


def _ignore(*_: object) -> None:
    """A signal has done its work."""


@contextmanager
def _quiet(*signals: signal.Signals) -> Generator[None]:
    """Ignore what uvicorn, when it has ended, raises of the signal that ended it."""
    handlers: dict[signal.Signals, Callable[..., Any] | int | None] = {
        number: signal.signal(number, _ignore) for number in signals
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
