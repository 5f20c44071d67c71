"""Draws from distributions, given the random numbers."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference


def _multinomial_from_uniform(
    prob: Array, uniform_sample: Array, sample_indices: Array | None = None, *, dtype: str
) -> Array:
    rows = np.arange(len(prob))[:, None] if sample_indices is None else sample_indices
    if uniform_sample.shape != (len(rows), 1) or rows.shape[1:] != (1,) or prob.shape[1] == 0:
        raise ValueError("there is not a distribution for each sample")
    if len(rows) > 0 and len(prob) == 0:
        raise ValueError("there is no distribution")
    chosen = np.clip(rows[:, 0].astype(np.int64), 0, max(len(prob) - 1, 0))
    sums = np.cumsum(prob, axis=1, dtype=np.float64)[chosen]
    above = uniform_sample < sums
    drawn = np.where(above.any(axis=1), above.argmax(axis=1), prob.shape[1] - 1)
    return drawn[:, None].astype(dtype)


REFERENCE: Mapping[str, Reference] = {"multinomial_from_uniform": _multinomial_from_uniform}
