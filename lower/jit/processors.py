"""Processors by name, with their features according to LLVM.

processor("native")          # the processor of this process
processor("x86-64-v3")       # a processor that LLVM knows, of this architecture
processor("generic")         # the baseline of this architecture
processor("aarch64")         # the baseline of another architecture
processor("aarch64:neoverse-n1")
"""

import re
import subprocess
import sys
from difflib import get_close_matches
from functools import cache

import llvmlite.binding as llvm

from relax_egraph.lower.emit.target import Target, host, this_architecture, vector_bits
from relax_egraph.lower.jit.machine_code import triple

_BASELINES = {"x86_64": "x86-64", "aarch64": "generic"}
"""The supported architectures, and the baseline processor of each."""

_FEATURES = {
    "aarch64": (
        *("aes", "bf16", "complxnum", "crc", "dotprod", "fp-armv8", "fullfp16", "i8mm", "jsconv"),
        *("lse", "neon", "rcpc", "rdm", "sha2", "sha3", "sve", "sve2"),
    )
}
"""The features to query, for architectures other than this machine's."""

_TARGETS = (
    'a target is a processor, such as "native", "generic" or "x86-64-v3"; LLVM compiles for each'
)

_QUESTION = """
define internal i32 @f{k}(i32 %x) "target-cpu"="{cpu}" "target-features"="+{feature}" {{
  %y = sub i32 {k}, %x
  ret i32 %y
}}
define i32 @has{k}(i32 %x) "target-cpu"="{cpu}" {{
  %y = call i32 @f{k}(i32 %x)
  ret i32 %y
}}
"""


@cache
def processor(name: str) -> Target:
    """The processor `name`; raises ``ValueError``, with similar names, if LLVM does not know it."""
    if name == "native":
        return host()
    architecture, colon, cpu = name.rpartition(":")
    if not colon and name in _BASELINES:
        architecture, cpu = name, "generic"
    architecture = architecture or this_architecture()
    if architecture not in _BASELINES:
        supported = ", ".join(_BASELINES)
        raise ValueError(f"target {name!r}: no code for {architecture!r}, only for {supported}")
    cpu = _BASELINES[architecture] if cpu == "generic" else cpu
    names = _known(architecture)
    if cpu not in names:
        near = get_close_matches(cpu, ("native", "generic", *names), 3, 0.7)
        like = f"did you mean {' or '.join(map(repr, near))}?" if near else _TARGETS
        raise ValueError(f"target {name!r}: LLVM knows no processor {cpu!r}; {like}")
    features = _features(architecture, cpu)
    return Target(cpu, features, vector_bits(features), architecture)


@cache
def _known(architecture: str) -> frozenset[str]:
    """The processors that LLVM knows; it only prints them, so a subprocess captures the list."""
    program = (
        "import llvmlite.binding as llvm\n"
        "llvm.initialize_all_targets()\n"
        f"target = llvm.Target.from_triple({triple(architecture)!r})\n"
        "target.create_target_machine(cpu='help')\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    listing = result.stderr.partition("Available features")[0]
    return frozenset(re.findall(r"^ +(\S+) +- Select", listing, re.MULTILINE))


def _features(architecture: str, cpu: str) -> frozenset[str]:
    """The features of `cpu`, among those of this machine or of `_FEATURES`.

    LLVM inlines a function only into one that has all its required features.  So for each feature a
    function that requires it is called by one that does not, and inlining shows that `cpu` has it.
    """
    llvm.initialize_all_targets()
    candidates = _FEATURES.get(architecture, ())
    if architecture == this_architecture():
        candidates = tuple(llvm.get_host_cpu_features())
    text = "\n".join(_QUESTION.format(k=k, cpu=cpu, feature=f) for k, f in enumerate(candidates))
    machine = llvm.Target.from_triple(triple(architecture)).create_target_machine(cpu=cpu)
    module = llvm.parse_assembly(text, llvm.create_context())
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    lacking = {int(k) for k in re.findall(r"call [^\n]*@f(\d+)\(", str(module))}
    return frozenset(feature for k, feature in enumerate(candidates) if k not in lacking)
