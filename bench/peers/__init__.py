"""The systems for comparison, as far as they are installed."""

import tempfile
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from bench.system import Compile


def _of(module: str, function: str = "compiled") -> Callable[[], Compile]:
    """A lazy import of `function` of the module of a peer, and with it the peer."""
    return lambda: getattr(import_module(f"bench.peers.{module}"), function)


_PEERS: Mapping[str, tuple[tuple[str, ...], Callable[[], Compile]]] = {
    "onnxruntime": (("onnxruntime", "onnx"), _of("onnxruntime")),
    "openvino": (("openvino", "onnx"), _of("openvino")),
    "jax": (("jax",), _of("jax")),
    "torch": (("torch",), _of("torch")),
    "torch.compile": (("torch",), _of("torch", "compiled_by_inductor")),
    "numpy": (("numpy",), _of("numpy")),
}
"""The required packages of each peer, itself first, and its `Compile` function."""


_XLA_ISAS = {256: "AVX2", 128: "SSE4_2"}
_NARROW: Mapping[int, Mapping[str, str]] = {
    256: {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    },
    128: {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    },
}
"""The environment that holds libraries to narrower vectors than this processor has."""


def installed() -> dict[str, str]:
    """The versions of the installed peers."""
    return {
        name: version(needed[0])
        for name, (needed, _) in _PEERS.items()
        if all(map(find_spec, needed))
    }


def peer(name: str) -> Compile:
    """The peer `name`, which is imported now."""
    return _PEERS[name][1]()


def operator_by_operator() -> Compile | None:
    """onnxruntime without its optimizations, a kernel for each operator; if it is installed."""
    return _of("onnxruntime", "as_written")() if "onnxruntime" in installed() else None


def environment(threads: int, vector_bits: int = 512) -> dict[str, str]:
    """The environment that peers need before import, for `threads` threads each.

    Those that can be are held to vectors of `vector_bits`; onnxruntime cannot.
    """
    counts = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")
    eigen = "true" if threads > 1 else "false"
    kernels = str(Path(tempfile.gettempdir(), f"torchinductor-{vector_bits}"))
    isa = f" --xla_cpu_max_isa={_XLA_ISAS[vector_bits]}" if vector_bits in _XLA_ISAS else ""
    return {
        **_NARROW.get(vector_bits, {}),
        **dict.fromkeys(counts, str(threads)),
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={eigen}{isa}",
        "JAX_PLATFORMS": "cpu",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",  # no processes in the background
        "TORCHINDUCTOR_CACHE_DIR": kernels,  # compiled for other vectors they may crash
        "MALLOC_MMAP_THRESHOLD_": "1000000000",  # no fresh pages for large results,
        "MALLOC_TRIM_THRESHOLD_": "4000000000",  # whose clearing would be timed
        "CI": "true",  # no telemetry of OpenVINO
    }
