"""The features of processors, according to LLVM."""

import re
from functools import cache

import llvmlite.binding as llvm

_CANDIDATES = {
    "aarch64": (
        *("aes", "bf16", "complxnum", "crc", "dotprod", "fp-armv8", "fullfp16", "i8mm", "jsconv"),
        *("lse", "neon", "rcpc", "rdm", "sha2", "sha3", "sve", "sve2"),
    )
}
"""The features to query, for architectures whose systems do not report them all."""

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
def features_of(architecture: str, cpu: str) -> frozenset[str]:
    """The features of `cpu`, among `_CANDIDATES`, else among those that LLVM reports here.

    LLVM inlines a function only into one that has all its required features.  So for each feature a
    function that requires it is called by one that does not, and inlining shows that `cpu` has it.
    """
    llvm.initialize_all_targets()
    candidates = _CANDIDATES.get(architecture) or tuple(llvm.get_host_cpu_features())
    text = "\n".join(_QUESTION.format(k=k, cpu=cpu, feature=f) for k, f in enumerate(candidates))
    target = llvm.Target.from_triple(f"{architecture}-unknown-unknown")
    machine = target.create_target_machine(cpu=cpu)
    module = llvm.parse_assembly(text, llvm.create_context())
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    lacking = {int(k) for k in re.findall(r"call [^\n]*@f(\d+)\(", str(module))}
    return frozenset(feature for k, feature in enumerate(candidates) if k not in lacking)
