"""Products of matrices and tensors."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Reference

REFERENCE: Mapping[str, Reference] = {
    "matmul": np.matmul,
}
