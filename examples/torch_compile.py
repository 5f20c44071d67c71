"""A network of torch, compiled by its backend relax_egraph: seconds to the first result.

Run it with ``python -m examples.torch_compile``; it needs ``pip install -e .[torch]``, no compiler.
"""

import time
from importlib import import_module
from typing import Any

torch: Any = import_module("torch")  # optional: absent when types are checked


def main() -> None:
    """Compile a network of four layers for all batch sizes, and compare it with eager torch."""
    nn = torch.nn
    model = nn.Sequential(
        *(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256), nn.LayerNorm(256))
    ).eval()
    fast = torch.compile(model, backend="relax_egraph", dynamic=True)
    with torch.no_grad():
        for batch in (4, 7, 32):
            x = torch.randn(batch, 48, 256)
            begin = time.perf_counter()
            result = fast(x)
            seconds = time.perf_counter() - begin
            difference = (result - model(x)).abs().max().item()
            print(f"batch {batch:2}: {seconds:6.3f} s, differs from torch by {difference:.0e}")


if __name__ == "__main__":
    main()
