"""Expected cycles of inner loops on AArch64, beside the loops of other libraries: llvm-mca.

    python -m bench.mca

The loops are read from the assembly of our kernels.  Those of other libraries are written down from
what they publish of their micro-kernels, the shape of a tile and the steps of an algorithm: what an
ideal schedule of these instructions takes, not their code.  LLVM has a model of Neoverse N1; for
Apple M1 it takes that of Cyclone, which has three vector units where the M1 has four.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table

from bench.inner_loops import InnerLoop, cycles, inner_loops, simulator
from relax_egraph import lower_module, parse
from relax_egraph.lower.emit.module_text import Module
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.lower.jit.listing import assemblies
from relax_egraph.lower.jit.machine_code import assembly
from relax_egraph.lower.jit.processors import processor
from relax_egraph.tir.stmt import PrimFunc

PROCESSORS = ("neoverse-n1", "apple-m1")
LANES = 4


@dataclass(frozen=True, slots=True)
class Row:
    """A loop, the operations or elements of a turn, and its instructions."""

    name: str
    unit: str
    amount: int
    instructions: Sequence[str]


# --- ours -----------------------------------------------------------------------------------


def intrinsic_loops(name: str) -> list[InnerLoop]:
    """The inner loops of a micro-kernel."""
    target = processor(f"aarch64:{PROCESSORS[0]}")
    module = Module(target)
    INTRINSICS[name](module, target)
    return list(inner_loops(assembly(str(module), target)))


def operator_loops(expression: str) -> list[InnerLoop]:
    """The inner loops of a kernel of a matrix `x`, which writes no more than the caches hold."""
    module = parse(f"""
@R.function
def main(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("n", "m"), "float32")):
    with R.dataflow():
        gv = {expression}
        R.output(gv)
    return gv
""")
    functions = {
        name: replace(f, attrs={})
        for name, f in lower_module(module).functions.items()
        if isinstance(f, PrimFunc)
    }
    target = processor(f"aarch64:{PROCESSORS[0]}")
    texts = assemblies(functions, INTRINSICS, target)
    return [loop for _, text in texts for loop in inner_loops(text)]


def tile(name: str, function: str, amount: int) -> Row:
    """The largest loop of `function` of a micro-kernel, which does `amount` multiply-adds."""
    loops = [loop for loop in intrinsic_loops(name) if loop.function == function]
    largest = max(loops, key=lambda loop: loop.count("fmla"))
    assert largest.count("fmla") * LANES == amount, largest
    return Row(f"{name}, {function}", "multiply-add", amount, largest.instructions)


def operator(name: str, expression: str, mnemonic: str, elements: int = LANES) -> Row:
    """The loop of a kernel with the most instructions of a `mnemonic`."""
    loops = operator_loops(expression)
    largest = max(loops, key=lambda loop: loop.count(mnemonic))
    return Row(name, "element", elements, largest.instructions)


# --- references -----------------------------------------------------------------------------


def product(rows: int, vectors: int, steps: int) -> list[str]:
    """A tile whose left operand is read by `steps` of the depth, as one vector for each row."""
    sums, left = 32 - rows * vectors, 0
    right = sums - 2 * vectors
    code = [f"ldr q{left + i}, [x{3 + i}], #16" for i in range(rows)]
    for k in range(steps):
        b = right + k % 2 * vectors
        code += [f"ldp q{b + v}, q{b + v + 1}, [x2], #32" for v in range(0, vectors, 2)]
        code += [
            f"fmla v{sums + i * vectors + v}.4s, v{b + v}.4s, v{left + i}.s[{k}]"
            for i in range(rows)
            for v in range(vectors)
        ]
    return [*code, "subs x1, x1, #16", "b.hs .L"]


def packed_product(steps: int) -> list[str]:
    """A tile of 16 × 4 of operands that are both packed: 4 vectors by 4 lanes."""
    code: list[str] = []
    for k in range(steps):
        a, b = k % 2 * 4, 8 + k % 2
        code += [f"ldp q{a + v}, q{a + v + 1}, [x2], #32" for v in (0, 2)]
        code.append(f"ldr q{b}, [x3], #16")
        code += [
            f"fmla v{16 + 4 * j + v}.4s, v{a + v}.4s, v{b}.s[{j}]"
            for j in range(4)
            for v in range(4)
        ]
    return [*code, "subs x1, x1, #1", "b.ne .L"]


_EXP = (
    "fsub {x}, {x}, v31.4s",  # x - max
    "mov {n}, v30.16b",
    "fmla {n}, {x}, v29.4s",  # magic + x·log2 e
    "shl {s}, {n}, #23",
    "fsub {n}, {n}, v30.4s",
    "fmla {x}, {n}, v28.4s",
    "fmla {x}, {n}, v27.4s",  # r
    "mov {p}, v26.16b",
    "fmla {p}, v25.4s, {x}",
    "fmla {p}, {p}, {x}",
    "fmla {p}, {p}, {x}",
    "fmla {p}, {p}, {x}",
    "fmul {x}, {x}, {s}",
    "fmla {s}, {p}, {x}",
    "fcmgt {n}, v24.4s, {x}",
    "bic {s}, {s}, {n}",  # 0 where it would be subnormal
)
"""The steps of ``e^(x - max)`` by a polynomial of degree 5, without subnormal results."""


def softmax_pass(vectors: int = 4) -> list[str]:
    """The exponentials of a row and their sum."""
    code = [f"ldr q{v}, [x1], #16" for v in range(vectors)]
    for step in _EXP:
        for v in range(vectors):
            names = {"x": v, "n": 4 + v, "s": 8 + v, "p": 12 + v}
            suffix = "16b" if step.startswith(("mov", "bic")) else "4s"
            code.append(step.format(**{k: f"v{r}.{suffix}" for k, r in names.items()}))
    for v in range(vectors):
        code += [f"str q{8 + v}, [x2], #16", f"fadd v{16 + v}.4s, v{16 + v}.4s, v{8 + v}.4s"]
    return [*code, "subs x0, x0, #64", "b.hs .L"]


def reduction(instruction: str, vectors: int = 4) -> list[str]:
    """The sum or the maximum of a row."""
    code = [f"ldp q{v}, q{v + 1}, [x1], #32" for v in range(0, vectors, 2)]
    code += [f"{instruction} v{8 + v}.4s, v{8 + v}.4s, v{v}.4s" for v in range(vectors)]
    return [*code, "subs x0, x0, #64", "b.hs .L"]


def rows() -> list[Row]:
    """All loops, ours before those that they are compared with."""
    ours = 5 * 4 * LANES * 4
    return [
        tile("gemm_tile", "gemm_5x4", ours),
        Row("  XNNPACK: 6 × 8 by lane, 4 steps", "multiply-add", 192, product(6, 2, 4)),
        Row("  OpenBLAS: 16 × 4, both packed", "multiply-add", 256, packed_product(4)),
        tile("gemm_tile_bfloat16", "gemm_5x4", ours),
        tile("gemm_tile_int8", "gemm_5x4", ours),
        tile("axpy_tile", "axpy_tile", 256),
        tile("window_tile", "window_6x4", 96),
        tile("depthwise_tile", "depthwise_5x4", 80),
        operator("softmax, exponentials", "R.nn.softmax(x)", "fmla", 2 * LANES),
        Row("  XNNPACK: degree 5, no subnormals", "element", 4 * LANES, softmax_pass()),
        operator("maximum of a row", "R.max(x, axis=[1])", "fmax", 4 * LANES),
        Row("  loads and maxima", "element", 4 * LANES, reduction("fmax")),
        operator("exp", "R.exp(x)", "fmla"),
        operator("tanh", "R.tanh(x)", "fmla"),
        operator("erf", "R.erf(x)", "fmla"),
        operator("gelu", "R.nn.gelu(x)", "fmla"),
    ]


_PER: dict[str, Callable[[int, float], str]] = {
    "multiply-add": lambda amount, turn: f"{amount / turn:.2f} a cycle",
    "element": lambda amount, turn: f"{turn / amount:.2f} cycles",
}
"""How a rate is said, for each unit."""


def main() -> None:
    """Print the table."""
    if simulator() is None:
        sys.exit("bench.mca needs llvm-mca (Debian: llvm-22)")
    table = Table("loop", "instructions", *PROCESSORS, box=None, pad_edge=False)
    for row in rows():
        turns = [cycles(row.instructions, name) for name in PROCESSORS]
        rates = [_PER[row.unit](row.amount, turn) for turn in turns]
        table.add_row(row.name, str(len(row.instructions)), *rates)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
