"""Targets of machine code: the processor, its features, its vectors, and the operating system."""

import platform
import sys
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
"""Features whose instructions LLVM never selects by itself; some systems hide them."""


def this_architecture() -> str:
    """The instruction set of this machine, by LLVM's name."""
    machine = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)


def this_system() -> str:
    """The operating system, a key of `SYSTEMS` where there is code for it."""
    return sys.platform


@dataclass(frozen=True, slots=True)
class Target:
    """A processor by LLVM's name; `features` are its features, without their ``+``.

    `vector_bits` is 512 with the AVX-512 of servers, 256 with AVX2 and FMA, else 128.  `system` is
    named as by ``sys.platform``: it decides the format of objects, and how functions are called.
    """

    cpu: str
    features: frozenset[str]
    vector_bits: int
    architecture: str = this_architecture()
    system: str = this_system()

    @property
    def feature_text(self) -> str:
        """The features in LLVM's format: ``+avx2,+fma``."""
        return ",".join(f"+{feature}" for feature in sorted(self.features))

    @property
    def has_fma(self) -> bool:
        """Whether ``a·b + c`` is one instruction with one rounding."""
        return "fma" in self.features or "neon" in self.features

    @property
    def has_masks(self) -> bool:
        """Whether masks are registers, so that masked code is as fast as unmasked."""
        return self.vector_bits == 512

    @property
    def vector_registers(self) -> int:
        """The number of vector registers."""
        return 32 if self.vector_bits == 512 or self.architecture == "aarch64" else 16

    @property
    def multiplies_by_lane(self) -> bool:
        """Whether a multiply-add takes a factor from any lane of a register."""
        return self.architecture == "aarch64"

    @property
    def multiplies_memory(self) -> bool:
        """Whether a multiply-add takes a factor from memory; else each takes a register."""
        return self.architecture != "aarch64"

    @property
    def has_extremes(self) -> bool:
        """Whether minimum and maximum, which are NaN if an operand is, are one instruction."""
        return self.architecture == "aarch64"

    def lacks(self, other: "Target") -> frozenset[str]:
        """The features of `other`, as far as kernels use them, that this target lacks."""
        return other.features - self.features - NOT_IN_KERNELS

    def lanes(self, bits: int = 32) -> int:
        """The number of elements of `bits` in a vector."""
        return self.vector_bits // bits


def vector_bits(features: frozenset[str]) -> int:
    """The width of vectors with `features`, see `Target`."""
    if features >= AVX512:
        return 512
    return 256 if features >= AVX2 else 128


@cache
def host() -> Target:
    """The target of this process."""
    import llvmlite.binding as llvm  # takes 40 ms, so imported on demand

    features = frozenset(name for name, has in llvm.get_host_cpu_features().items() if has)
    if this_architecture() == "aarch64":  # systems report few of them, or none
        from relax_egraph.lower.emit.features import features_of

        features |= features_of("aarch64", llvm.get_host_cpu_name())
    return Target(llvm.get_host_cpu_name(), features, vector_bits(features))


ANY = Target("portable", frozenset(), 256, "any", "any")
"""The target of text that may become machine code of any processor.

It has no optional instructions; products and sums are fused if that is one instruction.  Vectors
have the most common width: other processors split them, or use half a register.
"""


def portable(*features: str) -> Target:
    """An x86-64 processor with only `features`, for tests and for shipped code."""
    return Target("x86-64", frozenset(features), vector_bits(frozenset(features)), "x86_64")
