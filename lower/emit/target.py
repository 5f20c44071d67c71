"""What machine code is made for: a processor, its features, the width of its vectors."""

from dataclasses import dataclass
from functools import cache

AVX512 = frozenset({"avx512f", "avx512vl", "avx512bw", "avx512dq"})
AVX2 = frozenset({"avx2", "fma"})


@dataclass(frozen=True, slots=True)
class Target:
    """A processor as LLVM names it; `features` are the ones it has, without their ``+``.

    `vector_bits` is 512 with the AVX-512 of servers, 256 with AVX2 and FMA, else 128.
    """

    cpu: str
    features: frozenset[str]
    vector_bits: int

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

    def lanes(self, bits: int = 32) -> int:
        """How many elements of `bits` fill a vector."""
        return self.vector_bits // bits


def _vector_bits(features: frozenset[str]) -> int:
    if features >= AVX512:
        return 512
    return 256 if features >= AVX2 else 128


@cache
def host() -> Target:
    """The processor this process runs on."""
    import llvmlite.binding as llvm  # costs 40 ms: not before it is needed

    features = frozenset(name for name, has in llvm.get_host_cpu_features().items() if has)
    return Target(llvm.get_host_cpu_name(), features, _vector_bits(features))


def portable(*features: str) -> Target:
    """An x86-64 processor of which nothing is known but its `features`: for tests and shipping."""
    return Target("x86-64", frozenset(features), _vector_bits(frozenset(features)))
