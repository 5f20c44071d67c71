"""Every module is imported on every system: what only some have is taken when it is called."""

import json
import subprocess
import sys

import pytest

ABSENT = {
    "darwin": {
        "modules": ["msvcrt", "winreg", "_winapi"],
        "os": ["sched_getaffinity", "sched_setaffinity", "posix_fadvise", "memfd_create"],
        "mmap": ["MAP_POPULATE"],
        "signal": [],
        "library": True,
    },
    "win32": {
        "modules": [
            *("_posixsubprocess", "fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog"),
            *("termios", "tty"),
        ],
        "os": [
            *("O_ASYNC", "O_NONBLOCK", "chown", "fork", "geteuid", "getuid", "killpg", "mkfifo"),
            *("register_at_fork", "sched_getaffinity", "sched_setaffinity", "setsid", "sysconf"),
            *("uname", "wait4", "waitid"),
        ],
        "mmap": ["MADV_DONTNEED", "MAP_ANONYMOUS", "MAP_PRIVATE", "MAP_SHARED", "PROT_READ"],
        "signal": ["SIGALRM", "SIGIO", "SIGKILL", "SIGUSR1", "SIG_BLOCK", "pthread_sigmask"],
        "library": False,
    },
}
"""For each system: modules and names of Python that it lacks, and whether the process is a library
that ``ctypes.CDLL(None)`` opens."""

IMPORT = """
import ctypes, importlib, json, mmap, os, pkgutil, platform, signal, sys
# The libraries of others are those of this system.
import asyncio, click, cloudpickle, concurrent.futures, egglog, highspy, jinja2, llvmlite.binding
import ml_dtypes, multiprocessing.connection, numpy, onnx, onnx.backend.test, onnx.numpy_helper
import google.protobuf.message_factory, grpc.aio, prometheus_client, starlette.applications, uvicorn
import pygls.lsp.server, rich.console, sympy, unittest
system, absent = sys.argv[1], json.loads(sys.argv[2])
for name in absent["modules"]:
    sys.modules[name] = None
for module in (os, mmap, signal):
    for name in absent[module.__name__]:
        if hasattr(module, name):
            delattr(module, name)
if not absent["library"]:
    opened = ctypes.CDLL
    def refused(name, *args, **options):
        if name is None:
            raise TypeError("LoadLibrary() argument 1 must be str, not None")
        return opened(name, *args, **options)
    ctypes.CDLL = refused
platform.machine = lambda: {"darwin": "arm64", "win32": "AMD64"}[system]
sys.platform = system
import relax_egraph
count = 0
for part in pkgutil.walk_packages(relax_egraph.__path__, "relax_egraph."):
    doors = ("torch.", "torch_backend.", "stablehlo.", "jax_functions")
    needs_more = part.name.startswith(tuple(f"relax_egraph.frontends.{door}" for door in doors))
    if not part.name.endswith("__main__") and not needs_more:
        importlib.import_module(part.name)
        count += 1
print(count)
"""


@pytest.mark.parametrize("system", ABSENT)
def test_every_module_is_imported_on(system: str) -> None:
    command = [sys.executable, "-c", IMPORT, system, json.dumps(ABSENT[system])]

    done = subprocess.run(command, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 500
