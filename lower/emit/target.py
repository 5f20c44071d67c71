"""What machine code is made for: a processor, its features, the width of its vectors."""

import platform
from dataclasses import dataclass
from functools import cache

AVX512 = frozenset({"avx512f", "avx512vl", "avx512bw", "avx512dq"})
AVX2 = frozenset({"avx2", "fma"})


NOT_IN_KERNELS = frozenset(
    (
        *("cldemote", "clflushopt", "clwb", "clzero", "enqcmd", "fsgsbase", "hreset", "invpcid"),
        *("kl", "lwp", "mwaitx", "movdir64b", "movdiri", "pconfig", "pku", "prefetchi", "ptwrite"),
        *("rdpid", "rdpru", "rdrnd", "rdseed", "rtm", "serialize", "sgx", "shstk", "tsxldtrk"),
        *("uintr", "usermsr", "waitpkg", "wbnoinvd", "widekl", "xsave", "xsavec", "xsaveopt"),
        "xsaves",
    )
)
"""Features of instructions that are only used where a program names them: systems hide some."""


def this_architecture() -> str:
    """The instruction set of this machine, as LLVM calls it."""
    machine = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)


@dataclass(frozen=True, slots=True)
class Target:
    """A processor as LLVM names it; `features` are the ones it has, without their ``+``.

    `vector_bits` is 512 with the AVX-512 of servers, 256 with AVX2 and FMA, else 128.
    """

    cpu: str
    features: frozenset[str]
    vector_bits: int
    architecture: str = this_architecture()

    @property
    def feature_text(self) -> str:
        """The features as LLVM takes them: ``+avx2,+fma``."""
        return ",".join(f"+{feature}" for feature in sorted(self.features))

    @property
    def has_fma(self) -> bool:
        """Whether ``a·b + c`` is one instruction with one rounding."""
        return "fma" in self.features or "neon" in self.features

    @property
    def has_masks(self) -> bool:
        """Whether masks are registers, so that masked code is as fast as plain."""
        return self.vector_bits == 512

    def lacks(self, other: "Target") -> frozenset[str]:
        """What code for `other`, of the same architecture, may use that this processor has not."""
        return other.features - self.features - NOT_IN_KERNELS

    def lanes(self, bits: int = 32) -> int:
        """How many elements of `bits` fill a vector."""
        return self.vector_bits // bits


def vector_bits(features: frozenset[str]) -> int:
    """See `Target`."""
    if features >= AVX512:
        return 512
    return 256 if features >= AVX2 else 128


@cache
def host() -> Target:
    """The processor this process runs on."""
    import llvmlite.binding as llvm  # costs 40 ms: not before it is needed

    features = frozenset(name for name, has in llvm.get_host_cpu_features().items() if has)
    return Target(llvm.get_host_cpu_name(), features, vector_bits(features))


ANY = Target("portable", frozenset(), 256, "any")
"""Of text that becomes machine code of any processor.

No instruction is taken for granted; a product and a sum are fused where that is one instruction.
Vectors are of the width that most have: others cut them in two, or leave half of theirs empty.
"""


def portable(*features: str) -> Target:
    """An x86-64 processor of which nothing is known but its `features`: for tests and shipping."""
    return Target("x86-64", frozenset(features), vector_bits(frozenset(features)))
