"""`Model`: a saved model whose inputs and results have names, and whose calls take many rows."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import RunError
from relax_egraph.inference.tensor import Tensor, results_of, tensor_of
from relax_egraph.loading import load
from relax_egraph.vm.machine import VirtualMachine

Array = npt.NDArray[Any]


class Model:
    """A function of a saved model, on a machine of `num_threads` threads.

    The file is mapped: processes of one machine share its weights.  With a `digest`, the SHA-256 of
    the file, another file is refused.

    `batch` is the symbol that is the first extent of every input and every result, and no other
    extent: rows of several callers can be joined in a call.  ``None`` where there is no such
    symbol.  `bounds` are the sizes at which the plan changes, ascending, each the largest size of
    its plan.

    Results are named ``output_0``, ``output_1`` …, or as `outputs` says.  Raises what `load` raises
    for a damaged file, `UnknownFunction` for a function that is not there, and `RunError` for one
    with inputs or results other than tensors, and for a file that does not say what it returns.
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
        self.name = Path(path).stem
        executable = load(path, digest)
        entry = executable[function]
        self.inputs = tuple(map(tensor_of, entry.params, entry.param_info))
        interface = executable.interfaces.get(function)
        if interface is None:
            raise RunError(f"{path} does not say what {function} returns: build and save it again")
        self._is_tuple = interface.result.startswith("R.Tuple(")
        results = [*results_of(interface.result)]
        names = _names([name for name, _ in results], outputs)
        self.outputs = tuple(
            tensor_of(name, text) for name, (_, text) in zip(names, results, strict=True)
        )
        self.batch = _batch([*self.inputs, *self.outputs])
        self.bounds = interface.bounds.get(self.batch or "", ())
        self._call = VirtualMachine(executable, num_threads=num_threads)[function]

    def __repr__(self) -> str:
        takes, returns = ("; ".join(map(str, some)) for some in (self.inputs, self.outputs))
        return f"<Model {self.name}: {takes} -> {returns}>"

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
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
        fields = results if self._is_tuple else (results,)
        return {t.name: field for t, field in zip(self.outputs, fields, strict=True)}


def _names(given: Sequence[str], outputs: Sequence[str] | None) -> Sequence[str]:
    if outputs is None:
        return given
    if len(outputs) != len(given) or len(set(outputs)) != len(outputs):
        names = ", ".join(outputs)
        raise RunError(f"the outputs are named {names}: needs {len(given)} names, each once")
    return outputs


def _batch(tensors: Sequence[Tensor]) -> str | None:
    """The symbol that is the first extent of all `tensors`, and occurs nowhere else in them."""
    firsts = {tensor.shape[0] if tensor.shape else "" for tensor in tensors}
    others = {str(extent) for tensor in tensors for extent in tensor.shape[1:]}
    match [*firsts]:
        case [str(symbol)] if symbol.isidentifier():
            used = {name for text in others for name in re.findall(r"\w+", text)}
            return None if symbol in used else symbol
        case _:
            return None


def _check(tensor: Tensor, value: Array) -> None:
    """Raise `RunError` unless `value` has the dtype, the rank and the known extents of `tensor`."""
    fits = value.ndim == len(tensor.shape) and all(
        isinstance(needed, str) or needed == extent
        for needed, extent in zip(tensor.shape, value.shape, strict=True)
    )
    if value.dtype != np.dtype(tensor.dtype) or not fits:
        got = Tensor(tensor.name, str(value.dtype), value.shape)
        raise RunError(f"input {got}: needs {tensor}")
