"""Functions as users of jax write them, which are examples when this is imported."""

from bench.jax.functions import control as control
from bench.jax.functions import draws as draws
from bench.jax.functions import indexing as indexing
from bench.jax.functions import networks as networks
from bench.jax.functions import numerics as numerics
