"""`Model`: a saved model whose inputs and results have names, and whose calls take many rows."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from relax_egraph.errors import RunError
from relax_egraph.inference.rows import Array, Arrays
from relax_egraph.inference.signature import signature_in
from relax_egraph.inference.tensor import Tensor
from relax_egraph.loading import load
from relax_egraph.vm.machine import VirtualMachine


class Model:
    """A function of a saved model, on a machine of `num_threads` threads.

    The file is mapped: processes of one machine share its weights.  With a `digest`, the SHA-256 of
    the file, another file is refused.  It has the fields of its `Signature`.

    Raises what `load` raises for a damaged file, and what `signature_in` raises.
    """

    def __init__(
        self,
        path: str | Path,
        function: str = "main",
        *,
        outputs: Sequence[str] | None = None,
        num_threads: int | None = None,
        digest: str | None = None,
    ) -> None:
        executable = load(path, digest)
        self._signature = of = signature_in(executable, path, function, outputs)
        self.name, self.inputs, self.outputs = of.name, of.inputs, of.outputs
        self.batch, self.bounds = of.batch, of.bounds
        self._call = VirtualMachine(executable, num_threads=num_threads)[function]

    def __repr__(self) -> str:
        return repr(self._signature)

    def __call__(self, inputs: Arrays, /) -> dict[str, Array]:
        """The results for `inputs`, by name, which need the dtypes and shapes of `inputs`.

        Raises `RunError` that names the input which is missing, unknown or of another type.
        """
        known = {tensor.name: tensor for tensor in self.inputs}
        for name in inputs:
            if name not in known:
                raise RunError(f"there is no input {name}: needs {', '.join(known)}")
        for name, tensor in known.items():
            if name not in inputs:
                raise RunError(f"input {name} is missing: needs {tensor}")
            _check(tensor, inputs[name])
        results = self._call(*(inputs[name] for name in known))
        fields = results if self._signature.is_tuple else (results,)
        return {t.name: field for t, field in zip(self.outputs, fields, strict=True)}


def _check(tensor: Tensor, value: Array) -> None:
    """Raise `RunError` unless `value` has the dtype, the rank and the known extents of `tensor`."""
    fits = value.ndim == len(tensor.shape) and all(
        isinstance(needed, str) or needed == extent
        for needed, extent in zip(tensor.shape, value.shape, strict=True)
    )
    if value.dtype != np.dtype(tensor.dtype) or not fits:
        got = Tensor(tensor.name, str(value.dtype), value.shape)
        raise RunError(f"input {got}: needs {tensor}")
