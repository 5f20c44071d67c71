"""A server under many clients: wrong answers, requests per second, times, refusals.

    python -m bench.serving MODEL.rxe --clients 200 --seconds 60
    python -m bench.serving --digits -- --ray local --replicas 2

What stands behind ``--`` are options of ``relax-egraph serve``, which runs as a process of its own.
The clients take processor time of the same machine: a server alone answers more.  Every answer is
compared with what the model gives here for the rows alone; half of the clients send JSON, half of
them bytes.  Beside them one client sends requests that are malformed or too large.
"""

import argparse
import asyncio
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import numpy as np

import relax_egraph as rx
from bench.serving_client import Connection, http_request, infer_request
from relax_egraph.inference.model import Model
from relax_egraph.inference.rows import Array, Arrays

_CASES = 256
_MOST_ROWS = 4
_SECONDS_TO_START = 120
_PAUSE = 0.2
"""Seconds between requests of the client that sends malformed ones."""


@dataclass(frozen=True, slots=True)
class Case:
    """A request, and the outputs that it is to get."""

    request: bytes
    outputs: Arrays


@dataclass(slots=True)
class Counts:
    """What clients saw."""

    seconds: list[float] = field(default_factory=list[float])
    statuses: Counter[int] = field(default_factory=Counter[int])
    wrong: int = 0
    malformed: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])


def save_digits(path: Path) -> None:
    """Save the classifier of digits, with plans for 1, up to 16 and up to 64 images."""
    from examples.digits.model import Digits, build_model

    module = build_model(Digits.load().weights)
    best = rx.optimize(module, variants={"n": [(1, 1), (2, 16), (17, 64)]})
    rx.build(best).save(path)


def cases_of(model: Model, binary: bool) -> Sequence[Case]:
    """Random inputs of one to `_MOST_ROWS` rows, with the outputs that the model gives here."""
    numbers = np.random.default_rng(int(binary))
    path = f"/v2/models/{model.name}/infer"
    cases = list[Case]()
    for _ in range(_CASES):
        rows = int(numbers.integers(1, _MOST_ROWS + 1))
        inputs = {
            tensor.name: _random(
                tensor.dtype, [e if isinstance(e, int) else rows for e in tensor.shape], numbers
            )
            for tensor in model.inputs
        }
        cases.append(Case(infer_request(path, inputs, binary), model(inputs)))
    return cases


def _random(dtype: str, shape: Sequence[int], numbers: np.random.Generator) -> Array:
    if np.dtype(dtype).kind in "biu":
        return numbers.integers(0, 2, shape).astype(dtype)
    return numbers.standard_normal(shape).astype(dtype)


def malformed(model: Model) -> dict[str, bytes]:
    """Requests that are to get a status of 4xx with a sentence, by what is wrong with them."""
    path = f"/v2/models/{model.name}/infer"
    good = cases_of(model, False)[0].request.partition(b"\r\n\r\n")[2]
    name = model.inputs[0].name.encode()
    return {
        "no JSON": http_request(path, b"{"),
        "no text": http_request(path, bytes(range(128, 256))),
        "deep lists": http_request(path, b"[" * 100_000),
        "empty": http_request(path, b""),
        "no inputs": http_request(path, b'{"inputs": []}'),
        "another name": http_request(path, good.replace(b'"' + name + b'"', b'"stranger"')),
        "another datatype": http_request(path, good.replace(b'"FP32"', b'"FP64"')),
        "a shape of -1": http_request(path, good.replace(b'"shape": [', b'"shape": [-1, ')),
        "a shape of 10^30": http_request(
            path, good.replace(b'"shape": [', b'"shape": [1' + b"0" * 30 + b", ")
        ),
        "a text as data": http_request(path, good.replace(b'"data": [', b'"data": ["a", ')),
        "bytes that are not there": http_request(
            path, b"{}", {"inference-header-content-length": "9999"}
        ),
        "compressed": http_request(path, good, {"content-encoding": "gzip"}),
        "another model": http_request("/v2/models/stranger/infer", good),
        "48 MiB": http_request(path, b" " * (48 << 20)),
        "no HTTP": b"\x00\x01\x02\r\n\r\n",
    }


async def _client(
    at: tuple[str, int], cases: Sequence[Case], until: float, seed: int, counts: Counts
) -> None:
    connection, choose = Connection(*at), random.Random(seed)
    while (start := time.perf_counter()) < until:
        case = choose.choice(cases)
        answer = await connection.send(case.request)
        counts.seconds.append(time.perf_counter() - start)
        counts.statuses[answer.status] += 1
        if answer.status == 200:
            counts.wrong += not _agree(answer.outputs(), case.outputs)
        elif answer.status == 503:
            await asyncio.sleep(float(answer.headers.get("retry-after", 1)))
    connection.close()


def _agree(actual: Arrays, expected: Arrays) -> bool:
    return actual.keys() == expected.keys() and all(
        actual[name].shape == array.shape
        and np.allclose(
            actual[name].astype("float64"), array.astype("float64"), 1e-4, 1e-4, equal_nan=True
        )
        for name, array in expected.items()
    )


async def _vandal(
    at: tuple[str, int], requests: dict[str, bytes], until: float, counts: Counts
) -> None:
    while time.perf_counter() < until:
        for what, request in requests.items():
            connection = Connection(*at)
            try:
                answer = await connection.send(request)
                sentence = "with" if len(answer.body) > 20 else "without"
                result = f"{answer.status} {sentence} a sentence"
            except (OSError, asyncio.IncompleteReadError) as error:
                result = f"closed: {type(error).__name__}"
            connection.close()
            counts.malformed.setdefault(what, Counter())[result] += 1
            await asyncio.sleep(_PAUSE)


async def load(address: str, model: Model, clients: int, seconds: float) -> Counts:
    """What `clients` saw in `seconds`."""
    parts = urlsplit(address)
    at = (cast(str, parts.hostname), cast(int, parts.port))
    kinds = [cases_of(model, binary) for binary in (False, True)]
    bad, counts = malformed(model), Counts()
    until = time.perf_counter() + seconds
    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            group.create_task(_client(at, kinds[number % 2], until, number, counts))
        group.create_task(_vandal(at, bad, until, counts))
    return counts


@contextmanager
def server(model: Path, options: Sequence[str]) -> Generator[str]:
    """The address of a server of `model` in a process."""
    command = [sys.executable, "-m", "relax_egraph", "serve", str(model), *options]
    if "--port" not in options:
        command += ["--port", "8765"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line.startswith("http"):
            raise SystemExit(f"the server did not start: {line}")
        yield line.strip()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_SECONDS_TO_START)


def report(counts: Counts, seconds: float) -> Iterator[str]:
    """The lines of the report."""
    times = sorted(counts.seconds)
    at: Callable[[float], float] = lambda share: times[int(share * (len(times) - 1))] * 1e3  # noqa: E731
    answered = counts.statuses[200]
    yield f"{len(times):,} requests, {answered / seconds:,.0f} answered per second"
    yield f"p50 {at(0.5):.1f} ms, p99 {at(0.99):.1f} ms, most {times[-1] * 1e3:.1f} ms"
    yield f"statuses {dict(counts.statuses)}; refused {counts.statuses[503]}"
    yield f"wrong answers {counts.wrong}"
    for what, results in counts.malformed.items():
        said = ", ".join(f"{result} ({count})" for result, count in results.items())
        yield f"  {what}: {said}"


def main() -> int:
    """Print the report; the status is 1 if an answer was wrong."""
    parser = argparse.ArgumentParser(prog="bench.serving")
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--digits", action="store_true", help="serve the classifier of digits")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    words = sys.argv[1:]
    place = words.index("--") if "--" in words else len(words)
    args, options = parser.parse_args(words[:place]), words[place + 1 :]
    if (args.model is None) != args.digits:
        parser.error("needs MODEL.rxe, or --digits")
    with tempfile.TemporaryDirectory() as folder:
        path = args.model or Path(folder) / "digits.rxe"
        if args.digits:
            save_digits(path)
        with server(path, options) as address:
            counts = asyncio.run(load(address, Model(path), args.clients, args.seconds))
    own, servers = (
        sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    shared = f"{os.cpu_count()} processors, shared by the server and {args.clients} clients"
    print(f"{shared}: {servers:.0f} and {own:.0f} s of processor time")
    print("\n".join(report(counts, args.seconds)))
    return counts.wrong > 0


if __name__ == "__main__":
    raise SystemExit(main())
