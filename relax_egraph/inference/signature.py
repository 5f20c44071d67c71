"""`Signature`: the inputs and results of a saved function by name, and its batch dimension."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from relax_egraph.errors import RunError
from relax_egraph.inference.tensor import Tensor, results_of, tensor_of
from relax_egraph.vm.declarations import declarations
from relax_egraph.vm.executable import VMFunction
from relax_egraph.vm.interfaces import Interface


@dataclass(frozen=True, slots=True, repr=False)
class Signature:
    """What a function takes and returns.

    `batch` is the symbol that is the first extent of every input and every result, and no other
    extent: rows of several callers can be joined in a call.  ``None`` where there is no such
    symbol.  `bounds` are the sizes at which the plan changes, ascending, each the largest size of
    its plan.  `is_tuple` says whether the results are a tuple.
    """

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    batch: str | None
    bounds: tuple[int, ...]
    is_tuple: bool

    def __repr__(self) -> str:
        takes, returns = ("; ".join(map(str, some)) for some in (self.inputs, self.outputs))
        return f"<Model {self.name}: {takes} -> {returns}>"


class _Declared(Protocol):
    """The functions of an executable, or of its file."""

    def __getitem__(self, name: str) -> VMFunction: ...

    @property
    def interfaces(self) -> Mapping[str, Interface]: ...


def signature(path: Path, function: str, outputs: Sequence[str] | None) -> Signature:
    """That of `function` in the file at `path`, of which only its tables are read.

    Raises what `declarations` and `signature_in` raise.
    """
    return signature_in(declarations(path), path, function, outputs)


def signature_in(
    declared: _Declared, path: str | Path, function: str, outputs: Sequence[str] | None
) -> Signature:
    """That of `function`, one of those `declared` in the file at `path`.

    Results are named ``output_0``, ``output_1`` …, or as `outputs` says.  Raises `UnknownFunction`
    for a function that is not there, and `RunError` for one with inputs or results other than
    tensors, and for a file that does not say what it returns.
    """
    entry = declared[function]
    inputs = tuple(map(tensor_of, entry.params, entry.param_info))
    interface = declared.interfaces.get(function)
    if interface is None:
        raise RunError(f"{path} does not say what {function} returns: build and save it again")
    results = [*results_of(interface.result)]
    names = _names([name for name, _ in results], outputs)
    returned = tuple(tensor_of(name, text) for name, (_, text) in zip(names, results, strict=True))
    batch = _batch([*inputs, *returned])
    return Signature(
        Path(path).stem,
        inputs,
        returned,
        batch,
        interface.bounds.get(batch or "", ()),
        interface.result.startswith("R.Tuple("),
    )


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
