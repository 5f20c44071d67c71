"""Programs of jax: what agrees with jax itself, and what a call from jax costs."""
