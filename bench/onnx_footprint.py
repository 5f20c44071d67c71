"""The memory of importing an ONNX model of a gigabyte, each way in a new process.

Run from the top of the repository: ``python -m bench.onnx_footprint``.  The growth of a process is
its peak of resident pages; pages of the mapped file count too, and are also shown separately.  Only
Linux reports it.
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
from bench.resident import peak_resident, resident, resident_of_files

onnx: Any = import_module("onnx")  # optional: absent when types are checked

TENSORS, EXTENT = 8, 5600
"""The number of square float32 weights, a gigabyte in all."""

AT_MOST = 1.3
"""The bound on memory for each byte of the model."""


def save_model(file: Path, *, external: bool, tensors: int = TENSORS, extent: int = EXTENT) -> int:
    """Save a chain of products; returns the bytes of the model, including external data."""
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
    before, mapped_before = resident(), resident_of_files()
    module = rx.from_onnx(file)
    grown, mapped = peak_resident() - before, resident_of_files() - mapped_before
    figures = [
        Figure(
            f"{name}: import",
            grown / 1e6,
            AT_MOST * size / 1e6,
            {"model": size / 1e6, "of it pages of the file, at the end": mapped / 1e6},
        )
    ]
    before = resident()
    executable = rx.build(module)
    grown, mapped = peak_resident() - before, resident_of_files() - mapped_before
    del executable
    beside = {"pages of the file, at the end": mapped / 1e6}
    return [
        *figures,
        Figure(f"{name}: build, beside what the import took", grown / 1e6, None, beside),
    ]


def _warm_up(file: Path) -> None:
    """Do one-time work of the process, with a small model."""
    save_model(file, external=False, tensors=2, extent=64)
    rx.build(rx.from_onnx(file))


def figures() -> list[Figure]:
    """Both ways: a single file, and weights beside the file."""
    context = multiprocessing.get_context("spawn")
    results: list[Figure] = []
    for name, external in (("in one file", False), ("weights beside it", True)):
        with (
            TemporaryDirectory() as folder,
            ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as new,
        ):
            file = Path(folder) / "model.onnx"
            size = new.submit(save_model, file, external=external).result()
            results += new.submit(import_model, file, size, name).result()
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; returns 1 if one exceeds its bound."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    results = figures()
    for figure in results:
        wanted = "" if figure.wanted is None else f", wanted at most {figure.wanted:.0f}"
        beside = "; ".join(f"{name} {value:.0f}" for name, value in figure.beside.items())
        print(f"{figure.name}: {figure.value:.0f} MB{wanted} ({beside})")
    return int(any(figure.falls_short for figure in results))


if __name__ == "__main__":
    raise SystemExit(main())
