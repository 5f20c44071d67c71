"""What importing an ONNX model of a gigabyte takes of memory, each way in a process that is new.

Run from the top of the repository: ``python -m bench.onnx_footprint``.  A process grows by the most
pages that it holds at once; those of the mapped file that it has read count too, and stand beside
it.  Only Linux says how much it holds.
"""

import argparse
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import relax_egraph as rx
from bench.figure import Figure
from bench.held import held, held_of_files, most

onnx: Any = import_module("onnx")  # it may not be there when types are checked

TENSORS, EXTENT = 8, 5600
"""So many square weights of float32, a gigabyte."""

AT_MOST = 1.3
"""What the import may take for each byte of the model."""


def save_model(file: Path, *, external: bool, tensors: int = TENSORS, extent: int = EXTENT) -> int:
    """Save a chain of products; the bytes of the model, with those beside it."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    random = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(random.random((extent, extent), np.float32), f"w{k}")
        for k in range(tensors)
    ]
    values = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", extent])
        for name in ("x0", f"x{tensors}")
    ]
    nodes = [helper.make_node("MatMul", [f"x{k}", f"w{k}"], [f"x{k + 1}"]) for k in range(tensors)]
    graph = helper.make_graph(nodes, "graph", values[:1], values[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    onnx.save(model, file, save_as_external_data=external, location=f"{file.name}.data")
    return sum(f.stat().st_size for f in file.parent.glob(f"{file.name}*"))


def import_model(file: Path, size: int, name: str) -> list[Figure]:
    """Import a model of `size` bytes, and build it; megabytes."""
    _warm_up(file.with_suffix(".small"))
    before, mapped_before = held(), held_of_files()
    module = rx.from_onnx(file)
    grown, mapped = most() - before, held_of_files() - mapped_before
    figures = [
        Figure(
            f"{name}: import",
            grown / 1e6,
            AT_MOST * size / 1e6,
            {"model": size / 1e6, "of it pages of the file, at the end": mapped / 1e6},
        )
    ]
    before = held()
    executable = rx.build(module)
    grown, mapped = most() - before, held_of_files() - mapped_before
    del executable
    beside = {"pages of the file, at the end": mapped / 1e6}
    return [
        *figures,
        Figure(f"{name}: build, beside what the import took", grown / 1e6, None, beside),
    ]


def _warm_up(file: Path) -> None:
    """Do what a process does once, with a small model."""
    save_model(file, external=False, tensors=2, extent=64)
    rx.build(rx.from_onnx(file))


def figures() -> list[Figure]:
    """Both ways: all in one file, and with the weights beside it."""
    context = multiprocessing.get_context("spawn")
    found: list[Figure] = []
    for name, external in (("in one file", False), ("weights beside it", True)):
        with (
            TemporaryDirectory() as folder,
            ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as new,
        ):
            file = Path(folder) / "model.onnx"
            size = new.submit(save_model, file, external=external).result()
            found += new.submit(import_model, file, size, name).result()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; 1 if one falls short."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    found = figures()
    for figure in found:
        wanted = "" if figure.wanted is None else f", wanted at most {figure.wanted:.0f}"
        beside = "; ".join(f"{name} {value:.0f}" for name, value in figure.beside.items())
        print(f"{figure.name}: {figure.value:.0f} MB{wanted} ({beside})")
    return int(any(figure.falls_short for figure in found))


if __name__ == "__main__":
    raise SystemExit(main())
