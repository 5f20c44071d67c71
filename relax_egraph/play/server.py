"""The server of the page: on the loopback interface, for whoever knows the token in its address.

Every request carries the token as the first part of its path, names this server in ``Host`` (a
page of another site, whose name was rebound to this machine, does not), and is small.
"""

import hmac
import json
import secrets
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from relax_egraph.errors import RelaxEgraphError
from relax_egraph.play.answers import answer, begin
from relax_egraph.play.asked import Unreadable, asked
from relax_egraph.play.start import Start, start_data
from relax_egraph.play.tabs import Outdated, Tabs
from relax_egraph.workers.process import Death, Limits

MOST_BYTES = 1 << 18
"""The most bytes of a request."""

_HOST = "127.0.0.1"
_PAGE = Path(__file__).parent / "page"
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_JSON = "application/json"

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class PlayServer(ThreadingHTTPServer):
    """Serves the page, and answers its questions in `workers` processes with `limits`."""

    daemon_threads = True

    def __init__(self, start: Start, limits: Limits, workers: int, port: int = 0) -> None:
        super().__init__((_HOST, port), _Handler)
        self.start = start
        self.token = secrets.token_urlsafe(24)
        self.tabs = Tabs[dict[str, Any]](workers, limits, begin)
        self.hosts = {f"{name}:{self.server_port}" for name in (_HOST, "localhost")}

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{_HOST}:{self.server_port}/{self.token}/"

    def server_close(self) -> None:
        """Stop listening, and end the workers."""
        super().server_close()
        self.tabs.close()


class _Refused(Exception):
    """A request that is answered by a status and a sentence."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    """Answers one request; a request that is refused ends the connection."""

    protocol_version = "HTTP/1.1"
    server_version = "relax-egraph"
    sys_version = ""
    timeout = 60.0

    def do_GET(self) -> None:
        """Send a file of the page, or the data that it begins with."""
        self._answer(self._file)

    def do_POST(self) -> None:
        """Answer a question."""
        self._answer(self._question)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: addresses contain the token."""

    @property
    def _play(self) -> PlayServer:
        return cast(PlayServer, self.server)

    def _answer(self, handle: Callable[[str], tuple[str, bytes]]) -> None:
        try:
            kind, body = handle(self._admitted())
            status = HTTPStatus.OK
        except _Refused as refusal:
            kind, body, status = "text/plain", f"{refusal}\n".encode(), refusal.status
            self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        with suppress(ConnectionError):  # the page gave the question up
            self.end_headers()
            self.wfile.write(body)

    def _admitted(self) -> str:
        """The path behind the token, of a request that may be answered."""
        hosts, origin = self._play.hosts, self.headers.get("Origin")
        if self.headers.get("Host") not in hosts:
            raise _Refused(HTTPStatus.MISDIRECTED_REQUEST, "this server has another name")
        if origin is not None and origin.removeprefix("http://") not in hosts:
            raise _Refused(HTTPStatus.FORBIDDEN, "the request is of another site's page")
        token, slash, path = self.path.partition("?")[0].removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode(), self._play.token.encode()):
            raise _Refused(HTTPStatus.FORBIDDEN, "the address has no token, or a wrong one")
        if not slash:
            raise _Refused(HTTPStatus.NOT_FOUND, "the address ends with a slash")
        return path

    def _file(self, path: str) -> tuple[str, bytes]:
        if path == "start.json":
            return _JSON, _json(start_data(self._play.start))
        file = next((f for f in _PAGE.iterdir() if f.name == (path or "index.html")), None)
        if file is None or file.suffix not in _TYPES:
            raise _Refused(HTTPStatus.NOT_FOUND, "there is no such file")
        return _TYPES[file.suffix], file.read_bytes()

    def _question(self, path: str) -> tuple[str, bytes]:
        if path != "ask":
            raise _Refused(HTTPStatus.NOT_FOUND, "questions go to ask")
        data = self._body()
        start, tabs = self._play.start, self._play.tabs
        try:
            tab, edit = data.get("tab"), data.get("edit")
            if not isinstance(tab, str) or not isinstance(edit, int) or len(tab) > 64:
                raise Unreadable("needs a tab and the number of an edit")
            question = asked(data, start.file, start.model)
        except Unreadable as problem:
            raise _Refused(HTTPStatus.BAD_REQUEST, str(problem)) from None
        try:
            found = tabs.ask(tab, edit, partial(answer, question))
        except Outdated:
            return _JSON, _json({"outdated": True})
        except RelaxEgraphError as problem:
            return _JSON, _json({"ended": str(problem)})
        except Exception as problem:  # a fault of ours: the page says so and stays alive
            return _JSON, _json({"ended": f"failed: {type(problem).__name__}: {problem}"})
        if isinstance(found, Death):
            return _JSON, _json({"ended": str(found), "cause": found.cause})
        return _JSON, _json(found)

    def _body(self) -> dict[str, Any]:
        """The JSON object that was sent."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "needs a length")
        if int(length) > MOST_BYTES:
            message = f"a request has at most {MOST_BYTES} bytes"
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
        if self.headers.get_content_type() != _JSON:
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"needs {_JSON}")
        try:
            data = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise _Refused(HTTPStatus.BAD_REQUEST, "the request is no JSON") from None
        if not isinstance(data, dict):
            raise _Refused(HTTPStatus.BAD_REQUEST, "a request is an object")
        return cast(dict[str, Any], data)


def _json(data: object) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str).encode()


def serve(server: PlayServer) -> None:
    """Serve until interrupted or terminated, also where a shell lets its jobs ignore interrupts."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    server.tabs.warm()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
