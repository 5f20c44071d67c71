"""Write 50 tokens: a loop, growing caches and random draws, all in one call of the machine.

Run from the top of the repository: ``python -m examples.decoder.demo``.
"""

import numpy as np
from rich.console import Console

import relax_egraph as rx
from examples.decoder.model import build_model, generate, weights

FIRST, COUNT, SEED = 3, 50, 1


def main() -> int:
    """Print what is written; the exit status is 1 if numpy writes something else."""
    console = Console()
    vm = rx.VirtualMachine(rx.build(rx.optimize(build_model(weights()))))
    tokens = vm["generate"](np.array([FIRST]), np.array(COUNT), SEED).tolist()
    expected = generate(weights(), FIRST, COUNT, SEED)
    console.print(" ".join(map(str, tokens)))
    console.print("the same as numpy's" if tokens == expected else f"numpy: {expected}")
    return 0 if tokens == expected else 1


if __name__ == "__main__":
    raise SystemExit(main())
