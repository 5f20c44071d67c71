"""Processors by name, with their features according to LLVM.

processor("native")          # the processor of this process
processor("x86-64-v3")       # a processor that LLVM knows, of this architecture
processor("generic")         # the baseline of this architecture
processor("aarch64")         # the baseline of another architecture
processor("aarch64:neoverse-n1")
processor("darwin-aarch64:apple-m1")    # on another system: linux, darwin or win32
"""

import re
import subprocess
import sys
from difflib import get_close_matches
from functools import cache

from relax_egraph.lower.emit.features import features_of
from relax_egraph.lower.emit.target import (
    Target,
    host,
    this_architecture,
    this_system,
    vector_bits,
)
from relax_egraph.lower.jit.triples import SYSTEMS

_BASELINES = {"x86_64": "x86-64", "aarch64": "generic"}
"""The supported architectures, and the baseline processor of each."""

_TARGETS = (
    'a target is a processor, such as "native", "generic" or "x86-64-v3"; LLVM compiles for each'
)


@cache
def processor(name: str) -> Target:
    """The processor `name`; raises ``ValueError``, with similar names, if LLVM does not know it."""
    if name == "native":
        return host()
    place, colon, cpu = name.rpartition(":")
    if not colon and _architecture_in(name) in _BASELINES:
        place, cpu = name, "generic"
    system = place.partition("-")[0] if "-" in place else this_system()
    architecture = _architecture_in(place) or this_architecture()
    if system not in SYSTEMS:
        raise ValueError(f"target {name!r}: no code for {system!r}, only for {', '.join(SYSTEMS)}")
    if architecture not in _BASELINES:
        supported = ", ".join(_BASELINES)
        raise ValueError(f"target {name!r}: no code for {architecture!r}, only for {supported}")
    cpu = _BASELINES[architecture] if cpu == "generic" else cpu
    names = _known(architecture)
    if cpu not in names:
        near = get_close_matches(cpu, ("native", "generic", *names), 3, 0.7)
        like = f"did you mean {' or '.join(map(repr, near))}?" if near else _TARGETS
        raise ValueError(f"target {name!r}: LLVM knows no processor {cpu!r}; {like}")
    features = features_of(architecture, cpu)
    return Target(cpu, features, vector_bits(features), architecture, system)


def _architecture_in(place: str) -> str:
    """The architecture in ``darwin-aarch64`` or in ``aarch64``."""
    return place.rpartition("-")[2]


@cache
def _known(architecture: str) -> frozenset[str]:
    """The processors that LLVM knows; it only prints them, so a subprocess captures the list."""
    program = (
        "import llvmlite.binding as llvm\n"
        "llvm.initialize_all_targets()\n"
        f"target = llvm.Target.from_triple('{architecture}-unknown-unknown')\n"
        "target.create_target_machine(cpu='help')\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    listing = result.stderr.partition("Available features")[0]
    return frozenset(re.findall(r"^ +(\S+) +- Select", listing, re.MULTILINE))
