"""Processors by name: what LLVM knows of them.

processor("native")          # the one this process runs on
processor("x86-64-v3")       # any that LLVM knows, of this architecture
processor("generic")         # what all of this architecture have
processor("aarch64")         # what all of another architecture have
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
"""The architectures for which there is code, and the processor that has nothing of its own."""

_FEATURES = {
    "aarch64": (
        *("aes", "bf16", "complxnum", "crc", "dotprod", "fp-armv8", "fullfp16", "i8mm", "jsconv"),
        *("lse", "neon", "rcpc", "rdm", "sha2", "sha3", "sve", "sve2"),
    )
}
"""What is asked for, of architectures other than this machine's."""

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
    """The processor of this name; raises ``ValueError`` if LLVM knows none, with names like it."""
    if name == "native":
        return host()
    architecture, colon, cpu = name.rpartition(":")
    if not colon and name in _BASELINES:
        architecture, cpu = name, "generic"
    architecture = architecture or this_architecture()
    if architecture not in _BASELINES:
        known = ", ".join(_BASELINES)
        raise ValueError(f"target {name!r}: no code for {architecture!r}, only for {known}")
    cpu = _BASELINES[architecture] if cpu == "generic" else cpu
    known = _known(architecture)
    if cpu not in known:
        near = get_close_matches(cpu, ("native", "generic", *known), 3, 0.7)
        like = f", but {' and '.join(map(repr, near))}" if near else ""
        raise ValueError(f"target {name!r}: LLVM knows no processor {cpu!r}{like}")
    features = _features(architecture, cpu)
    return Target(cpu, features, vector_bits(features), architecture)


@cache
def _known(architecture: str) -> frozenset[str]:
    """The names of processors, which LLVM only prints: another process reads what it prints."""
    program = (
        "import llvmlite.binding as llvm\n"
        "llvm.initialize_all_targets()\n"
        f"target = llvm.Target.from_triple({triple(architecture)!r})\n"
        "target.create_target_machine(cpu='help')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    listed = done.stderr.partition("Available features")[0]
    return frozenset(re.findall(r"^ +(\S+) +- Select", listed, re.MULTILINE))


def _features(architecture: str, cpu: str) -> frozenset[str]:
    """The features of `cpu` that this machine, or `_FEATURES`, has a name for.

    A function can be inlined where there are all features that it asks for: so for each feature one
    that asks for it is called by one that does not.
    """
    llvm.initialize_all_targets()
    asked = _FEATURES.get(architecture, ())
    if architecture == this_architecture():
        asked = tuple(llvm.get_host_cpu_features())
    text = "\n".join(_QUESTION.format(k=k, cpu=cpu, feature=f) for k, f in enumerate(asked))
    machine = llvm.Target.from_triple(triple(architecture)).create_target_machine(cpu=cpu)
    module = llvm.parse_assembly(text, llvm.create_context())
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    lacking = {int(k) for k in re.findall(r"call [^\n]*@f(\d+)\(", str(module))}
    return frozenset(feature for k, feature in enumerate(asked) if k not in lacking)
