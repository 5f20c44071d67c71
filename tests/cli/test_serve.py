"""``relax-egraph serve``: the process, from its first line to its end."""

import json
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.support.command import invoke
from tests.support.served import free_port, grpc_method, saved_doubled

for package in ("starlette", "uvicorn", "prometheus_client"):
    pytest.importorskip(package, reason="needs the extra [serve]")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved_doubled(tmp_path_factory.mktemp("serve"))


@pytest.fixture
def server(saved: Path) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "relax_egraph", "serve", str(saved), "--port", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_what_it_prints_can_be_run_and_a_signal_ends_it(
    server: "subprocess.Popen[str]", end: signal.Signals
) -> None:
    assert server.stdout is not None
    assert server.stderr is not None
    address, example, how_it_ends = (server.stdout.readline().strip() for _ in range(3))
    curl, url, option, body = shlex.split(example)

    with urlopen(Request(url, body.encode())) as reply:
        outputs = json.load(reply)["outputs"]
    server.send_signal(end)

    assert (curl, url, option) == ("curl", f"{address}/infer", "-d")
    assert outputs == [{"name": "output_0", "datatype": "FP32", "shape": [1, 2], "data": [0, 0]}]
    assert how_it_ends == "ends with Ctrl-C"
    assert (server.wait(30), server.stderr.read()) == (0, "")


def test_grpc_is_answered_beside_http(saved: Path) -> None:
    pytest.importorskip("grpc", reason="needs the extra [serve]")
    import grpc

    from relax_egraph.server.messages import MESSAGES

    port = free_port()
    command = [sys.executable, "-m", "relax_egraph", "serve", str(saved), "--port", "0"]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(
            [*command, "--grpc-port", str(port)], stdout=pipe, stderr=pipe, text=True
        ) as process,
        grpc.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        _, example, at, _ = (process.stdout.readline().strip() for _ in range(4))
        asked = MESSAGES["ServerReadyRequest"]()
        answer = grpc_method(channel, "ServerReady")(asked, timeout=20, wait_for_ready=True)
        with urlopen(shlex.split(example)[1].removesuffix("/infer")) as reply:
            named = json.load(reply)["name"]
        process.send_signal(signal.SIGTERM)

        assert at == f"gRPC: 127.0.0.1:{port}, model {named}"
        assert answer.ready
        assert (process.wait(30), process.stderr.read()) == (0, "")


@pytest.mark.parametrize("option", ["--port", "--grpc-port"])
def test_a_port_in_use_is_an_error(saved: Path, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = invoke("serve", saved, "--port", 0, option, port)

    said = f"Error: cannot listen at port {port} of 127.0.0.1: Address already in use\n"
    assert (result.exit_code, result.output) == (1, said)


def test_a_host_that_is_not_known_is_an_error(saved: Path) -> None:
    result = invoke("serve", saved, "--host", "no-such-host.invalid")

    said = "Error: cannot listen at port 8000 of no-such-host.invalid: "
    assert result.exit_code == 1
    assert result.output.startswith(said)


def test_a_file_that_is_no_executable_is_an_error(tmp_path: Path) -> None:
    other = tmp_path / "model.rxe"
    other.write_bytes(b"other")

    result = invoke("serve", other, "--port", 0)

    assert result.exit_code == 1
    assert str(other) in result.output


def test_a_model_that_is_not_saved_is_refused_with_the_command_that_saves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.onnx").touch()

    result = invoke("serve", "model.onnx")

    said = "no saved executable: relax-egraph optimize model.onnx -o model.rxe makes one"
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--replicas", 2], "--replicas needs --ray: without it there is one process"),
        (["--function", "other"], "no function 'other' in the executable"),
        (["--timeout", 0], "0.0 is not in the range x>0"),
        (["--queue", 0], "0 is not in the range x>=1"),
    ],
)
def test_options_that_do_not_fit_are_refused(saved: Path, options: list[object], said: str) -> None:
    result = invoke("serve", saved, "--port", 0, *options)

    assert result.exit_code in (1, 2)
    assert said in result.output


def test_packages_that_are_not_there_are_named_with_the_remedy(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(_: str) -> None: ...

    monkeypatch.setattr("relax_egraph.server.packages.find_spec", none)

    result = invoke("serve", saved)

    said = "relax-egraph serve needs the packages starlette, uvicorn, prometheus_client: "
    assert result.exit_code == 2
    assert said + "pip install 'relax-egraph[serve]'" in result.output
