"""Versions of packages, and the processor: what a report of an error should say."""

import platform
from importlib.metadata import PackageNotFoundError, version

from relax_egraph.lower.emit.machine import machine_of
from relax_egraph.lower.emit.target import NOT_IN_KERNELS, host

PACKAGES = (
    *("numpy", "egglog", "llvmlite", "sympy", "highspy"),
    *("onnx", "torch", "jax", "z3-solver", "ray"),
)
"""The packages whose versions are shown."""


def versions() -> dict[str, str]:
    """Versions of this package, Python and its dependencies, and the target processor."""
    target, machine = host(), machine_of(host())
    used = sorted(target.features - NOT_IN_KERNELS)
    return {
        "relax-egraph": _version("relax-egraph"),
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        "system": f"{platform.system()} {platform.release()}",
        "processor": f"{target.cpu} ({target.architecture}), vectors of {target.vector_bits} bits",
        "caches": f"{machine.first.size >> 10} KiB and {machine.second.size >> 10} KiB a core",
        "features": " ".join(used),
    }


def show_versions() -> None:
    """Print what `versions` says, a line each."""
    known = versions()
    width = max(map(len, known))
    print("\n".join(f"{name:<{width}} {value}" for name, value in known.items()))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
