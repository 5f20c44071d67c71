"""The systems that we are measured beside, those of them that are installed."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec

from bench.system import Compile


def _of(module: str, function: str = "compiled") -> Callable[[], Compile]:
    """What imports `function` of the module of a peer, and with it the peer."""
    return lambda: getattr(import_module(f"bench.peers.{module}"), function)


_PEERS: Mapping[str, tuple[tuple[str, ...], Callable[[], Compile]]] = {
    "onnxruntime": (("onnxruntime", "onnx"), _of("onnxruntime")),
    "openvino": (("openvino", "onnx"), _of("openvino")),
    "jax": (("jax",), _of("jax")),
    "torch": (("torch",), _of("torch")),
    "torch.compile": (("torch",), _of("torch", "compiled_by_inductor")),
    "numpy": (("numpy",), _of("numpy")),
}
"""For each peer what must be installed, itself first, and what makes it ready."""


def installed() -> dict[str, str]:
    """The versions of the peers that are there."""
    return {
        name: version(needed[0])
        for name, (needed, _) in _PEERS.items()
        if all(map(find_spec, needed))
    }


def peer(name: str) -> Compile:
    """The peer of that name, which is imported now."""
    return _PEERS[name][1]()


def operator_by_operator() -> Compile | None:
    """onnxruntime without its optimizations, each operator a kernel of its own; if it is there."""
    return _of("onnxruntime", "as_written")() if "onnxruntime" in installed() else None


def environment(threads: int) -> dict[str, str]:
    """What must be in the environment before peers are imported, for so many threads each."""
    counts = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")
    eigen = "true" if threads > 1 else "false"
    return {
        **dict.fromkeys(counts, str(threads)),
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={eigen}",
        "JAX_PLATFORMS": "cpu",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",  # or it starts processes that work beside us
        "MALLOC_MMAP_THRESHOLD_": "1000000000",  # or large results are fresh pages each time,
        "MALLOC_TRIM_THRESHOLD_": "4000000000",  # and what is timed is the system that clears them
        "CI": "true",  # or OpenVINO reports to its makers that it was imported
    }
