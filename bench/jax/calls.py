"""What a call of a module from a jitted function costs: ``python -m bench.jax.calls``.

The same function is called by our machine alone, by jax alone, and through ``rx.jax_call``, in
turns; the figures are medians of the time that passes: jax runs callbacks on another thread.
"""

import time
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import relax_egraph as rx

_ROUNDS = 40
_CALLS = 50


def _function(x: Any, y: Any) -> Any:
    return jnp.tanh(x + y)


def _seconds(call: Any, *arrays: Any) -> float:
    result: Any = None
    start = time.perf_counter()
    for _ in range(_CALLS):
        result = call(*arrays)
    jax.block_until_ready(result)
    return (time.perf_counter() - start) / _CALLS


def main() -> int:
    """Print microseconds a call for each way and size."""
    for size in (16, 4096, 262144):
        spec = jax.ShapeDtypeStruct((size,), jnp.float32)
        module = rx.from_jax(_function, spec, spec)
        own = rx.VirtualMachine(rx.build(rx.optimize(module)), num_threads=1)["main"]
        rng = np.random.default_rng(0)
        x, y = rng.standard_normal((2, size)).astype("float32")
        ways = {
            "machine": (own, x, y),
            "jax": (jax.jit(_function), jnp.asarray(x), jnp.asarray(y)),
            "jax_call": (jax.jit(rx.jax_call(module)), jnp.asarray(x), jnp.asarray(y)),
        }
        want = np.tanh(x + y)
        for call, *arrays in ways.values():
            np.testing.assert_allclose(np.asarray(call(*arrays)), want, rtol=1e-5, atol=1e-6)
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(_ROUNDS):
            for name, (call, *arrays) in ways.items():
                times[name].append(_seconds(call, *arrays))
        figures = ", ".join(
            f"{name} {median(t) * 1e6:.1f} µs (least {min(t) * 1e6:.1f})"
            for name, t in times.items()
        )
        print(f"{size} floats: {figures}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
