"""``python -m bench.exports.depths FOLDER``: encoders of growing depth, as torch exports them.

Each depth is exported with attention written out and as an operator, and with lengths that are
numbers and symbols.  The table has processor seconds of planning beside those that peers take to
load the same file.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from rich.table import Table

import relax_egraph as rx
from bench.encoders import without_cache
from bench.output import console
from bench.peers import installed

DEPTHS = (3, 6, 12, 24, 48)
WIDTH, HEADS, INNER, LENGTH = 768, 12, 3072, 128


@dataclass(frozen=True, slots=True)
class Exported:
    """How one encoder is exported."""

    layers: int
    is_operator: bool
    is_symbolic: bool

    @property
    def name(self) -> str:
        """The name of its folder, and in the table."""
        attention = "operator" if self.is_operator else "written out"
        return f"{self.layers} layers, {attention}, {'symbolic' if self.is_symbolic else 'static'}"


def export(encoder: Exported, folder: Path) -> Path:
    """The file of `encoder` in `folder`, which torch writes if it is not there."""
    path = folder / encoder.name / "model.onnx"
    if not path.exists():
        torch: Any = import_module("torch")
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        path.parent.mkdir(parents=True, exist_ok=True)
        layers = [_layer(torch, encoder.is_operator) for _ in range(encoder.layers)]
        lengths = ({1: "s"},) if encoder.is_symbolic else None
        with torch.no_grad():
            program = torch.onnx.export(
                torch.nn.Sequential(*layers).eval(),
                (torch.zeros(1, LENGTH, WIDTH),),
                dynamo=True,
                opset_version=20,
                dynamic_shapes=lengths,
                verbose=False,
            )
        program.save(path, external_data=True)
    return path


def _layer(torch: Any, is_operator: bool) -> Any:
    """A layer that normalizes after each of its two sums."""
    nn: Any = torch.nn

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
            self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
            self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

        def forward(self, x: Any) -> Any:
            split = (x.shape[0], x.shape[1], HEADS, WIDTH // HEADS)
            q, k, v = (p(x).view(split).transpose(1, 2) for p in (self.q, self.k, self.v))
            if is_operator:
                read = nn.functional.scaled_dot_product_attention(q, k, v)
            else:
                scores = q * (1 / math.sqrt(WIDTH // HEADS)) @ k.transpose(-1, -2)
                read = torch.softmax(scores, -1) @ v
            x = self.first(x + self.o(read.transpose(1, 2).reshape(x.shape)))
            return self.second(x + self.down(nn.functional.gelu(self.up(x))))

    return Layer()


def _onnxruntime(path: Path) -> object:
    onnxruntime: Any = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _openvino(path: Path) -> object:
    core: Any = import_module("openvino").Core()
    return core.compile_model(core.read_model(path), "CPU", {"INFERENCE_NUM_THREADS": 1})


PEERS: Mapping[str, Callable[[Path], object]] = {
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
}
"""How peers load a file, until it can run."""


@click.command
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--depth", "depths", type=int, multiple=True, default=DEPTHS, show_default=True)
def main(folder: Path, depths: tuple[int, ...]) -> None:
    """Export encoders to FOLDER, once, and plan them; FOLDER needs 28 MB for each layer."""
    peers = {name: load for name, load in PEERS.items() if name in installed()}
    columns = ("status", "gap", "import", "optimize", "of it extraction", *peers)
    table = Table("encoder", *columns, title="planning, CPU seconds", title_justify="left")
    out = console()
    kinds = [(o, s) for o in (False, True) for s in (False, True)]
    encoders = [Exported(layers, *kind) for layers in depths for kind in kinds]
    with out.status("exporting"):
        paths = {encoder: export(encoder, folder) for encoder in encoders}
    planned(paths[encoders[0]])  # what is done once for a process
    for encoder, path in paths.items():
        with out.status(encoder.name):
            seconds = (cpu(lambda load=load: load(path)) for load in peers.values())  # noqa: B023
            table.add_row(encoder.name, *planned(path), *(f"{s:.2f}" for s in seconds))
    out.print(table)


def planned(path: Path) -> tuple[str, ...]:
    """The columns of our own: of the regions, their statuses and the largest gap; seconds."""
    start = time.process_time()
    module = rx.from_onnx(path)
    imported = time.process_time()
    with without_cache():
        explained = rx.explain(module)
    done = time.process_time()
    found = [region.extraction for region in explained.regions]
    statuses = dict.fromkeys(each.status for each in found)
    gap = max((each.gap for each in found), default=0.0)
    extraction = sum(each.seconds for each in found)
    times = (imported - start, done - imported, extraction)
    return ("; ".join(statuses), f"{100 * gap:.2f} %", *(f"{each:.2f}" for each in times))


def cpu(run: Callable[[], object]) -> float:
    """Processor seconds of this process for one run."""
    start = time.process_time()
    run()
    return time.process_time() - start


if __name__ == "__main__":
    main()
