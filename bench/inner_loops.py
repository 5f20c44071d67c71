"""Inner loops in the assembly language of AArch64, and what llvm-mca expects of them.

``llvm-mca`` simulates the pipelines of a processor on a loop whose memory is in the first cache.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_FUNCTION = re.compile(r"(?ms)^(?P<name>[A-Za-z_][\w.]*):\n(?P<body>.*?)^\.Lfunc_end")
_LABEL = re.compile(r"(?m)^(?=\.LBB\w+:)")
_VERSIONS = ("llvm-mca-22", "llvm-mca")
_TURNS = 1000


@dataclass(frozen=True, slots=True)
class InnerLoop:
    """The instructions of a block of `function` that branches back to itself."""

    function: str
    instructions: tuple[str, ...]

    def count(self, mnemonic: str) -> int:
        """The instructions with a `mnemonic`."""
        return sum(line.split()[0] == mnemonic for line in self.instructions)


def inner_loops(assembly: str) -> Iterator[InnerLoop]:
    """The inner loops of each function, in order."""
    for function in _FUNCTION.finditer(assembly):
        for block in _LABEL.split(function["body"]):
            label, _, rest = block.partition(":\n")
            lines = [line.strip() for line in rest.splitlines() if line.startswith("\t")]
            code = [" ".join(line.split()) for line in lines if not line.startswith(".")]
            ends = [k for k, line in enumerate(code) if re.search(rf" {re.escape(label)}$", line)]
            if label.startswith(".LBB") and ends:
                yield InnerLoop(function["name"], tuple(code[: ends[-1] + 1]))


def simulator() -> str | None:
    """The newest llvm-mca: older ones have no model of Neoverse N1."""
    return next(filter(None, map(shutil.which, _VERSIONS)), None)


def cycles(instructions: Sequence[str], processor: str) -> float:
    """The expected cycles of one turn of a loop on `processor`."""
    program = simulator()
    assert program is not None
    command = [program, "-mtriple=aarch64", f"-mcpu={processor}", f"-iterations={_TURNS}"]
    text = "\n".join(instructions)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    total = re.search(r"Total Cycles: +(\d+)", done.stdout)
    assert total is not None
    return int(total[1]) / _TURNS
