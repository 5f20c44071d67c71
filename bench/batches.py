"""``python -m bench.batches``: tables through models by Ray, beside onnxruntime in the same way.

Rows a second by one and by two actors, or two calls of one actor, and the memory of eight, on this
machine, beside actors that do nothing.  The rows are drawn once and lie in Ray's memory; results
are compared before times.  Needs ``.[bench,ray]``, and 8 GB for the large model.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import click
import numpy as np
from rich.table import Table

import relax_egraph as rx
from bench import transformer
from bench.onnx_writer import onnx_model
from bench.output import console
from bench.program import Array
from bench.resnet import resnet
from examples.digits.model import Digits, build_model
from relax_egraph.ir import Var, call, const, symbol, tensor
from relax_egraph.ir.expr import Expr
from relax_egraph.ray.cluster import LOCAL, connected, ray_module

onnxruntime: Any = import_module("onnxruntime")  # optional: absent when types are checked
data = ray_module("ray.data")

TOLERANCE = 1e-4
"""The largest accepted difference of results, relative to the largest magnitude."""

BLOCKS = 16
"""The blocks of a table, which Ray hands out."""

MANY = 8
"""The actors, or calls of one actor, whose memory is compared with that of one."""


@dataclass(frozen=True)
class Subject:
    """A model, how many rows are drawn for it, and how many are in a batch.

    A `masked` one has a second input, a mask of the first extent of a row.  Of a `large` one there
    are not many sessions of onnxruntime, each of which has the weights for itself.
    """

    name: str
    make: Callable[[], rx.IRModule]
    row: tuple[int, ...]
    rows: int
    batch: int
    masked: bool = False
    large: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that its inputs read, in order."""
        return ("x", "mask") if self.masked else ("x",)


def large_layers() -> rx.IRModule:
    """Four layers of 8192 units, with 1.07 GB of weights."""
    random = np.random.default_rng(0)
    bb = rx.BlockBuilder()
    x = Var("x", tensor((symbol("n"), _WIDTH), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            value: Expr = x
            for _ in range(4):
                weights = random.standard_normal((_WIDTH, _WIDTH), np.float32)
                weights *= np.float32(_WIDTH**-0.5)
                value = bb.emit(call("nn.relu", bb.emit(call("matmul", value, const(weights)))))
            out = bb.emit_output(value)
        bb.emit_func_output(out)
    return bb.get()


_WIDTH = 8192

SUBJECTS = (
    Subject("digits", lambda: build_model(Digits.load().weights), (64,), 400_000, 1024),
    Subject(
        "encoder, 2 layers, width 256, 64 tokens",
        lambda: transformer.encoder(transformer.Sizes(2, hidden=256, heads=4, inner=1024)),
        (64, 256),
        2_000,
        16,
        masked=True,
    ),
    Subject("ResNet-50", lambda: resnet(symbol("n")), (3, 224, 224), 64, 4),
    Subject("4 layers of 8192, 1.07 GB of weights", large_layers, (_WIDTH,), 512, 16, large=True),
)


class Session:
    """An actor with a session of onnxruntime."""

    def __init__(self, path: str, columns: Sequence[str]) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            path, options, providers=["CPUExecutionProvider"]
        )
        names = (declared.name for declared in self._session.get_inputs())
        self._read = dict(zip(names, columns, strict=True))

    def __call__(self, batch: Mapping[str, Array]) -> dict[str, Array]:
        """The results for a batch, with its keys."""
        (result,) = self._session.run(None, {n: batch[c] for n, c in self._read.items()})
        return {"id": batch["id"], "output_0": result}


class Idle:
    """An actor that does nothing: what Python, Ray and its libraries take."""

    def __call__(self, batch: Mapping[str, Array]) -> dict[str, Array]:
        """Zeros, with the keys of a batch."""
        return {"id": batch["id"], "output_0": np.zeros(len(batch["id"]), np.float32)}


@dataclass(frozen=True)
class Memory:
    """Proportional shares of pages, in bytes, of all actors together, when they are largest.

    They are `private` data, `files`, which are code and weights, and batches in Ray's `store`.
    """

    private: int
    files: int
    store: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.private + self.files + self.store


@dataclass(frozen=True)
class Outcome:
    """What one run took, the memory of its actors, and the results in the order of keys."""

    rows_a_second: float
    memory: Memory
    results: Array


def measured(dataset: Any) -> Outcome:
    """Run `dataset` to its end; its time begins when its actors have answered for one batch."""
    while _memory().total:  # the actors of the last run are ending
        time.sleep(0.1)
    samples: list[Memory] = []
    ended = Event()

    def sample() -> None:
        while not ended.wait(0.2):
            samples.append(_memory())

    watch = Thread(target=sample)
    watch.start()
    try:
        batches: list[Mapping[str, Array]] = []
        begin = 0.0
        for batch in dataset.iter_batches(batch_size=None, batch_format="numpy"):
            begin = begin or time.perf_counter()
            batches.append(batch)
        seconds = time.perf_counter() - begin
    finally:
        ended.set()
        watch.join()
    keys = np.concatenate([batch["id"] for batch in batches])
    results = np.concatenate([batch["output_0"] for batch in batches])[np.argsort(keys)]
    timed = len(keys) - len(batches[0]["id"])
    return Outcome(timed / seconds, max(samples, key=lambda m: m.total), results)


def _memory() -> Memory:
    """The memory of the processes of actors that map batches."""
    sums = dict.fromkeys(("Pss_Anon", "Pss_File", "Pss_Shmem"), 0)
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            if not (process / "cmdline").read_bytes().startswith(b"ray::MapWorker"):
                continue
            lines = (process / "smaps_rollup").read_text().splitlines()[1:]
            of = {name: int(rest.split()[0]) * 1024 for name, rest in map(_parted, lines)}
            for name in sums:
                sums[name] += of[name]
    return Memory(*sums.values())


def _parted(line: str) -> tuple[str, str]:
    name, _, rest = line.partition(":")
    return name, rest


def rows_of(subject: Subject) -> Any:
    """The table of `subject`, in Ray's memory."""
    row, masked = subject.row, subject.masked

    def drawn(batch: Mapping[str, Array]) -> dict[str, Array]:
        random = np.random.default_rng(int(batch["id"][0]))
        x = random.standard_normal((len(batch["id"]), *row), np.float32)
        mask = {"mask": np.ones(x.shape[:2], np.int64)} if masked else {}
        return {"id": batch["id"], "x": x, **mask}

    keys = data.range(subject.rows, override_num_blocks=BLOCKS)
    return keys.map_batches(drawn, batch_size=None).materialize()


@dataclass(frozen=True)
class Run:
    """A `system` on so many `actors`, each with so many `calls` under way."""

    system: str
    actors: int = 1
    calls: int = 1


def runs(subject: Subject, folder: Path) -> Iterator[tuple[Run, Outcome]]:
    """Both systems on one and on two actors, in turns, and on `MANY`; actors that do nothing."""
    module = subject.make()
    saved, written = folder / "model.rxe", folder / "model.onnx"
    rx.build(rx.optimize(module)).save(saved)
    written.write_bytes(onnx_model(module).SerializeToString())
    del module
    table = rows_of(subject)

    def dataset(run: Run) -> Any:
        if run.system == OURS:
            return rx.ray.map_batches(
                table, saved, batch_size=subject.batch, actors=run.actors, calls=run.calls
            )
        actor = Idle if run.system == NOTHING else Session
        return table.map_batches(
            actor,
            fn_constructor_args=() if actor is Idle else (str(written), subject.columns),
            batch_size=subject.batch,
            batch_format="numpy",
            zero_copy_batch=True,
            compute=data.ActorPoolStrategy(
                size=run.actors,
                max_concurrent_calls_per_actor=run.calls,
                enable_true_multi_threading=True,
            ),
            num_cpus=run.calls,
        )

    for actors, calls in ((1, 1), (1, 2), (2, 1), (1, MANY), (MANY, 1)):
        for system in (OURS, THEIRS, NOTHING):
            run = Run(system, actors, calls)
            if not (system == THEIRS and actors == MANY and subject.large):
                yield run, measured(dataset(run))


OURS, THEIRS, NOTHING = "relax-egraph", "onnxruntime", "nothing"


def table_of(subject: Subject, found: Iterable[tuple[Run, Outcome]]) -> Table:
    """The rows of one model; raises ``AssertionError`` where systems disagree."""
    table = Table(title=subject.name)
    columns = ("system", "actors", "calls", "rows/s", "MB", "private", "files", "store")
    for column in (*columns, "MB / MB of one"):
        table.add_column(column, justify="right" if table.columns else "left")
    expected: Array | None = None
    ones: dict[str, int] = {}
    for run, outcome in found:
        if run.system != NOTHING:
            expected = outcome.results if expected is None else expected
            error = np.abs(outcome.results - expected).max() / np.abs(expected).max()
            assert error < TOLERANCE, (run, error)
        memory = outcome.memory
        one = ones.setdefault(run.system, memory.total)
        table.add_row(
            *(run.system, str(run.actors), str(run.calls), f"{outcome.rows_a_second:,.0f}"),
            *(f"{m / 1e6:.0f}" for m in (memory.total, memory.private, memory.files, memory.store)),
            f"{memory.total / one:.2f}",
        )
    return table


@click.command
@click.option("--only", default="", metavar="WORD", help="Models with it in their name.")
def main(only: str) -> None:
    """Measure tables through models."""
    out = console()
    with connected(LOCAL, num_cpus=MANY + 2), TemporaryDirectory() as folder:
        data.DataContext.get_current().enable_progress_bars = False
        for subject in SUBJECTS:
            if only in subject.name:
                out.print(table_of(subject, runs(subject, Path(folder))))


if __name__ == "__main__":
    main()
