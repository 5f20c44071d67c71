"""Compilation of the LLVM texts of an executable for this processor.

LLVM may crash on texts of unknown origin: those not in the cache are compiled in another process,
whose objects are checked like those of files.
"""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate, pairwise
from subprocess import PIPE, TimeoutExpired

from relax_egraph.base.lifeline import TiedProcess
from relax_egraph.errors import ExecutableError
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.jit import compile_text
from relax_egraph.lower.jit.compiled import CompiledKernels
from relax_egraph.lower.jit.machine_code import machine_of, object_key
from relax_egraph.lower.jit.object_cache import default_cache
from relax_egraph.lower.jit.objects import symbols_of

PATIENCE = 600
"""The time limit of the other process, in seconds."""


def rebuilt(texts: CompiledKernels, target: Target) -> CompiledKernels:
    """The objects of `texts` for `target`; raises `ExecutableError` if they do not compile."""
    cache = default_cache()
    keys = {name: object_key(_decoded(text), target) for name, text in texts.objects.items()}
    cached = {name: cache.get(key) for name, key in keys.items()}
    objects = {name: data for name, data in cached.items() if data is not None}
    missing = {n: _decoded(t) for n, t in texts.objects.items() if n not in objects}
    if missing:
        compiled = _compiled_apart(missing, target)
        for name, data in compiled.items():
            cache.put(keys[name], data)
        cache.trim()
        objects |= compiled
    return replace(texts, target=target, objects={name: objects[name] for name in texts.objects})


def _decoded(text: bytes) -> str:
    try:
        return text.decode("ascii")
    except UnicodeDecodeError as error:
        raise ExecutableError(f"section objects: LLVM text: {error}") from None


def _compiled_apart(texts: Mapping[str, str], target: Target) -> dict[str, bytes]:
    request = json.dumps({"machine": machine_of(target), "texts": list(texts.values())})
    program = f"import runpy; runpy.run_path({compile_text.__file__!r}, run_name='__main__')"
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    with TiedProcess(program, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment) as process:
        try:
            output, errors = process.communicate(request.encode(), PATIENCE)
        except TimeoutExpired:
            raise _refused(f"it takes more than {PATIENCE} s") from None
        finally:
            process.kill()
    head, _, rest = output.partition(b"\n")
    if process.returncode or not head:
        last = errors.decode(errors="replace").strip().splitlines()[-1:]
        raise _refused(f"the process ended with {process.returncode}: {''.join(last)}")
    answer = json.loads(head)
    if "error" in answer:
        raise _refused(answer["error"])
    places = pairwise(accumulate(answer["sizes"], initial=0))
    objects = {n: rest[start:end] for n, (start, end) in zip(texts, places, strict=True)}
    for name, data in objects.items():
        if name not in symbols_of(data, target).defined:
            raise _refused(f"no text defines {name}")
    return objects


def _refused(why: str) -> ExecutableError:
    return ExecutableError(f"section objects: LLVM text does not compile: {why}")
