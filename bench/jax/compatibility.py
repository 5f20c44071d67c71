"""The programs that jax keeps to stay compatible with: how many agree with their recorded outputs.

Run from the top of the repository: ``python -m bench.jax.compatibility [--json FILE]``.  They are
in the wheel of jax.  Programs of the libraries of a platform, such as LAPACK, are not counted.
"""

import argparse
import importlib
import json
import pkgutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax._src.internal_test_util.export_back_compat_test_data as recorded
import numpy as np

import relax_egraph as rx
from bench.jax.agreement import Outcome, difference
from relax_egraph.errors import RelaxEgraphError

_LIBRARIES = ("lapack_", "cusolver", "cusparse", "hipsolver", "tpu_custom", "mosaic", "__gpu$")
_OF_TPU = ("Eigh", "LuDecomposition", "Qr", "cu_lu_", "hip_lu_", "ProductOfElementary")


def programs() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All programs, by the names of their files."""
    for info in pkgutil.walk_packages(recorded.__path__, recorded.__name__ + "."):
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if not name.startswith("__"):
                yield from ((info.name.rpartition(".")[2], each) for each in _within(value))


def _within(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict) and "mlir_module_serialized" in value:
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _within(each)


def is_of_a_platform(program: Mapping[str, Any]) -> bool:
    """Whether `program` calls the library of a platform."""
    return any(t.startswith(_LIBRARIES + _OF_TPU) for t in program["custom_call_targets"])


def outcome(name: str, program: Mapping[str, Any]) -> Outcome:
    """The outcome of `program`."""
    try:
        module = rx.from_stablehlo(program["mlir_module_serialized"])
        main = rx.VirtualMachine(rx.build(rx.optimize(module)), num_threads=1)["main"]
        results = main(*map(np.asarray, program["inputs"]))
        reason = difference(results, program["expected_outputs"], 1e-5)
    except RelaxEgraphError as refusal:
        reason = str(refusal).splitlines()[-1].strip()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
    return Outcome(name, program["platform"], reason)


def main() -> int:
    """Print each failure, and how many agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    some = list(programs())
    each = [outcome(name, program) for name, program in some if not is_of_a_platform(program)]
    for failed in each:
        if failed.reason:
            print(f"{failed.name} ({failed.kind}): {failed.reason}")
    agree = sum(not o.reason for o in each)
    print(f"{agree} of {len(each)} programs agree; {len(some) - len(each)} are of a platform")
    if options.json:
        rows = [{"name": o.name, "kind": o.kind, "reason": o.reason} for o in each]
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
