"""The server answers whoever knows its token and its name, within its bounds."""

import http.client
import json
import re
import socket
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError

import pytest

from relax_egraph.play.examples import examples
from relax_egraph.play.server import MOST_BYTES, PlayServer
from relax_egraph.play.start import Start
from relax_egraph.workers.process import Limits

FIRST = examples()[0]
QUESTION = {
    "tab": "a",
    "edit": 0,
    "kind": "result",
    "program": FIRST.program,
    "rules": FIRST.rules,
}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server() -> Iterator[PlayServer]:
    server = PlayServer(Start(FIRST.program, FIRST.rules, "my.egg"), Limits(120.0, 3 << 30), 2)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def get(address: str, **headers: str) -> tuple[int, Any, str]:
    """The status, the headers and the text of an answer."""
    return _sent(urllib.request.Request(address, headers=headers))


def ask(server: PlayServer, data: object, **headers: str) -> tuple[int, Any, str]:
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    request = urllib.request.Request(f"{server.address}ask", body, {**JSON, **headers})
    return _sent(request)


def _sent(request: urllib.request.Request) -> tuple[int, Any, str]:
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            return response.status, response.headers, response.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def test_the_page_is_whole_and_may_load_nothing_from_elsewhere(server: PlayServer) -> None:
    status, headers, page = get(server.address)
    links = re.findall(r'(?:src|href)="([^"]*)"', page)

    assert status == 200
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "no-referrer"
    texts = {name: get(server.address + name)[2] for name in links if not name.startswith("data:")}
    assert set(texts) == {"style.css", "main.js"}
    for name in re.findall(r'from "\./([^"]*)"', texts["main.js"]):
        texts[name] = get(server.address + name)[2]
    for text in (page, *texts.values()):
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(|innerHTML", text)


def test_the_page_begins_with_the_texts_of_the_command(server: PlayServer) -> None:
    data = json.loads(get(f"{server.address}start.json")[2])

    assert (data["program"], data["rules"], data["file"]) == (
        FIRST.program,
        FIRST.rules,
        "my.egg",
    )
    assert len(data["examples"]) == 10
    assert "R.cos" in data["vocabulary"]["operator"]


def test_a_question_is_answered(server: PlayServer) -> None:
    status, _, text = ask(server, QUESTION)

    answer = json.loads(text)
    assert (status, answer["mistakes"]) == (200, [])
    assert [kernel["calls"] for kernel in answer["kernels"]] == ["fused_cos_ewise_fma"]


@pytest.mark.parametrize("path", ["/", "/start.json", "/wrong/", "/wrong/start.json", "//ask"])
def test_without_the_token_nothing_is_served(server: PlayServer, path: str) -> None:
    status, _, text = get(f"http://127.0.0.1:{server.server_port}{path}")

    assert (status, text) == (403, "the address has no token, or a wrong one\n")


def test_another_host_is_refused(server: PlayServer) -> None:
    status, _, text = get(server.address, Host=f"attacker.example:{server.server_port}")

    assert (status, text) == (421, "this server has another name\n")


def test_the_page_of_another_site_is_refused(server: PlayServer) -> None:
    assert ask(server, QUESTION, Origin="http://attacker.example")[0] == 403
    assert ask(server, QUESTION, Origin=f"http://127.0.0.1:{server.server_port}")[0] == 200


def test_a_large_request_is_refused_before_it_is_read(server: PlayServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.putrequest("POST", f"/{server.token}/ask")
    for name, value in {**JSON, "Content-Length": str(MOST_BYTES + 1)}.items():
        connection.putheader(name, value)
    connection.endheaders()

    with connection.getresponse() as response:
        assert response.status == 413
    connection.close()


@pytest.mark.parametrize(
    ("data", "status", "message"),
    [
        (b"{", 400, "the request is no JSON"),
        (b"[" * 100_000, 400, "the request is no JSON"),
        ([], 400, "a request is an object"),
        ({**QUESTION, "edit": "1"}, 400, "needs a tab and the number of an edit"),
        ({**QUESTION, "kind": "run"}, 400, "kind is one of result, steps"),
    ],
)
def test_other_requests_are_refused(
    server: PlayServer, data: object, status: int, message: str
) -> None:
    got, _, text = ask(server, data)

    assert got == status
    assert text.startswith(message)


def test_other_content_and_other_paths_are_refused(server: PlayServer) -> None:
    other = {"Content-Type": "text/plain"}
    request = urllib.request.Request(f"{server.address}ask", b"{}", other)

    assert _sent(request)[0] == 415
    assert get(f"{server.address}server.py")[0] == 404
    assert get(f"{server.address}../server.py")[0] == 404


def test_only_this_machine_is_served(server: PlayServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    with socket.socket() as other:
        other.settimeout(5)
        assert other.connect_ex(("127.0.0.2", server.server_port)) != 0


def test_each_server_has_a_token_of_its_own(server: PlayServer) -> None:
    other = PlayServer(Start(), Limits(1.0), 1)
    other.server_close()

    assert len(server.token) >= 32
    assert other.token != server.token
