"""Random numbers, written into existing tensors.

The generator is Philox 4x64 of numpy (Salmon et al., Parallel random numbers: as easy as 1, 2, 3):
the same seed gives the same numbers, in the order of the calls.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import RunError
from relax_egraph.vm.builtins.builtin import Builtin, of_values, wrong

Array = npt.NDArray[Any]
_DTYPES = (np.float32, np.float64)


def rng_state(seed: Any) -> "np.random.Generator":
    """A generator with `seed`, a nonnegative integer."""
    if type(seed) is not int or seed < 0:
        raise wrong("rng_state", "seed", seed, "a nonnegative integer")
    return np.random.Generator(np.random.Philox(seed))


def rng_uniform(state: Any, out: Any) -> Array:
    """`out`, filled with uniform numbers in [0, 1) from the generator `state`."""
    return _filled("rng_uniform", state, out, np.random.Generator.random)


def rng_normal(state: Any, out: Any) -> Array:
    """`out`, filled with standard normal numbers from the generator `state`."""
    return _filled("rng_normal", state, out, np.random.Generator.standard_normal)


def _filled(name: str, state: Any, out: Any, draw: Callable[..., Any]) -> Array:
    if not isinstance(state, np.random.Generator):
        raise wrong(name, "state", state, "a generator from rng_state")
    if not isinstance(out, np.ndarray) or out.dtype not in _DTYPES:
        raise wrong(name, "out", out, "a tensor of float32 or float64")
    if not out.flags.writeable or not out.flags.c_contiguous:
        raise RunError(f"vm.builtin.{name}: operand out is read-only or not contiguous")
    draw(state, dtype=out.dtype, out=out)
    return out


RANDOM: tuple[Builtin, ...] = (
    of_values(rng_state),
    of_values(rng_uniform),
    of_values(rng_normal),
)
