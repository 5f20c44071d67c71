"""The features of processors, according to LLVM."""

import re
from functools import cache

import llvmlite.binding as llvm

_CANDIDATES = {
    "aarch64": (
        *("aes", "bf16", "complxnum", "crc", "dotprod", "fp-armv8", "fullfp16", "i8mm", "jsconv"),
        *("lse", "neon", "rcpc", "rdm", "sha2", "sha3", "sve", "sve2"),
    ),
    "x86_64": (
        *("64bit", "adx", "aes", "amx-avx512", "amx-bf16", "amx-complex", "amx-fp16", "amx-fp8"),
        *("amx-int8", "amx-movrs", "amx-tf32", "amx-tile", "avx", "avx10.1", "avx10.2", "avx2"),
        *("avx512bf16", "avx512bitalg", "avx512bw", "avx512cd", "avx512dq", "avx512f"),
        *("avx512fp16", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vl", "avx512vnni"),
        *("avx512vp2intersect", "avx512vpopcntdq", "avxifma", "avxneconvert", "avxvnni"),
        *("avxvnniint16", "avxvnniint8", "bmi", "bmi2", "ccmp", "cf", "cmov", "cmpccxadd", "crc32"),
        *("cx16", "cx8", "egpr", "f16c", "fma", "fma4", "fxsr", "gfni", "lzcnt", "mmx", "movbe"),
        *("movrs", "ndd", "nf", "pclmul", "popcnt", "ppx", "prfchw", "push2pop2", "raoint", "sahf"),
        *("sha", "sha512", "sm3", "sm4", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "sse4a"),
        *("ssse3", "tbm", "vaes", "vpclmulqdq", "xop", "zu"),
    ),
}
"""The features to query, of each architecture, whichever this machine has."""

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
    """The features of `cpu`, among `_CANDIDATES`.

    LLVM inlines a function only into one that has all its required features.  So for each feature a
    function that requires it is called by one that does not, and inlining shows that `cpu` has it.
    """
    llvm.initialize_all_targets()
    candidates = _CANDIDATES[architecture]
    text = "\n".join(_QUESTION.format(k=k, cpu=cpu, feature=f) for k, f in enumerate(candidates))
    target = llvm.Target.from_triple(f"{architecture}-unknown-unknown")
    machine = target.create_target_machine(cpu=cpu)
    module = llvm.parse_assembly(text, llvm.create_context())
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    lacking = {int(k) for k in re.findall(r"call [^\n]*@f(\d+)\(", str(module))}
    return frozenset(feature for k, feature in enumerate(candidates) if k not in lacking)
