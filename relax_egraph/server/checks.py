"""What any request is checked for, in whichever form it came; `Refused` has the sentence."""

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from relax_egraph.errors import nearest
from relax_egraph.inference.rows import Array
from relax_egraph.inference.tensor import Tensor
from relax_egraph.server.model import Model, shape_text
from relax_egraph.server.refusal import bad
from relax_egraph.server.tensors import DATATYPES

_KNOWN = set(DATATYPES.values())
_LARGEST_EXTENT = 2**31 - 1
_MOST_AXES = 32


class Inputs:
    """The inputs of a request for `model`, as they are read."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._known = {tensor.name: tensor for tensor in model.inputs}
        self.arrays = dict[str, Array]()

    def tensor(self, name: str) -> Tensor:
        """The input `name` of the model, which has not been read before."""
        if name not in self._known:
            raise bad(_no_such("input", name, self._model, self._known))
        if name in self.arrays:
            raise bad(f"input {name!r} is there twice")
        return self._known[name]

    def check_type(self, tensor: Tensor, datatype: str, shape: Sequence[int]) -> None:
        """Refuse an array of `datatype` and `shape` that is not of the type of `tensor`."""
        where, needed = f"input {tensor.name!r}", DATATYPES[tensor.dtype]
        if datatype not in _KNOWN:
            raise bad(f"{where} has datatype {datatype[:40]!r}, needs {needed}")
        if datatype != needed:
            raise bad(f"{where} has datatype {datatype}; model {self._model.name!r} takes {needed}")
        if not all(type(e) is int and 0 <= e <= _LARGEST_EXTENT for e in shape):
            raise bad(f"{where}: shape needs to be a list of integers from 0 to {_LARGEST_EXTENT}")
        if len(shape) > _MOST_AXES or prod(e for e in shape if e) >= 2**62:
            raise bad(f"{where}: shape {_cut(shape)} is larger than any array")
        if not _fits(shape, tensor.shape):
            takes = shape_text(tensor.shape)
            raise bad(f"{where} has shape {_cut(shape)}; model {self._model.name!r} takes {takes}")

    def all(self) -> Mapping[str, Array]:
        """All inputs of the model; those that have a symbol have one size of it."""
        if missing := [name for name in self._known if name not in self.arrays]:
            needed = f"model {self._model.name!r} needs {_names(self._known)}"
            raise bad(f"input {missing[0]!r} is missing; {needed}")
        sizes = dict[str, tuple[int, str]]()
        for name, tensor in self._known.items():
            for symbol, extent in zip(tensor.shape, self.arrays[name].shape, strict=True):
                if isinstance(symbol, str) and symbol.isidentifier():
                    first, other = sizes.setdefault(symbol, (extent, name))
                    if first != extent:
                        of = f"{first} in input {other!r} and {extent} in input {name!r}"
                        raise bad(f"{symbol} is {of}; needs to be the same")
        return self.arrays


def check_output(name: str, model: Model) -> None:
    """Refuse the name of an output that `model` has not."""
    known = [tensor.name for tensor in model.outputs]
    if name not in known:
        raise bad(_no_such("output", name, model, known))


def _fits(shape: Sequence[int], model: Sequence[int | str]) -> bool:
    extents = zip(shape, model, strict=False)
    return len(shape) == len(model) and all(isinstance(m, str) or e == m for e, m in extents)


def _no_such(kind: str, name: str, model: Model, known: Iterable[str]) -> str:
    said = f"model {model.name!r} has no {kind} {name[:60]!r}; it has {_names(known)}"
    return "; ".join(filter(None, (said, nearest(name[:60], (*known,)))))


def _names(known: Iterable[str]) -> str:
    return ", ".join(known) or "none"


def _cut(shape: Sequence[int]) -> str:
    return str(list(shape)) if len(shape) <= 8 else f"[{', '.join(map(str, shape[:8]))}, …]"
