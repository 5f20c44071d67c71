"""From a saturated e-graph back to a view."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from relax_egraph.egraph.tables import Key, Tables, Term
from relax_egraph.egraph.view import ClassId, EClass, View
from relax_egraph.egraph.vocabulary import operators
from relax_egraph.errors import IllTyped
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor

_UNKNOWN = TensorStructInfo()


@dataclass(frozen=True, slots=True)
class ReadBack:
    """A view of an e-graph, and which of its classes each class of the loaded view became.

    Classes that no root needs are in neither.
    """

    view: View
    became: Mapping[ClassId, ClassId]


def read_back(tables: Tables, loaded: View) -> ReadBack:
    """The classes that the roots of `loaded` need, numbered in a fixed order from the roots.

    Subsumed nodes, the names of loaded values, and nodes over their own class are left out.
    """
    known: dict[Key, TensorStructInfo] = {}
    for number, key in tables.loaded.items():
        known.setdefault(key, loaded.classes[number].struct_info)
    roots = [tables.loaded[r] for r in loaded.roots]
    classes, numbers = classes_of(tables, roots, known)
    view = View(classes, tuple(numbers[r] for r in roots), loaded.leaves, loaded.opaque)
    return ReadBack(view, {k: numbers[key] for k, key in tables.loaded.items() if key in numbers})


def classes_of(
    tables: Tables, roots: Iterable[Key], known: Mapping[Key, TensorStructInfo]
) -> tuple[dict[ClassId, EClass], dict[Key, ClassId]]:
    """The classes that `roots` need, and their numbers; `known` is what is known besides facts."""
    numbers = _numbering(roots, tables.terms)
    infos = _Infos(tables, known)
    classes = {n: _class(key, tables, infos, numbers) for key, n in numbers.items()}
    return classes, numbers


def _class(key: Key, tables: Tables, infos: "_Infos", numbers: Mapping[Key, ClassId]) -> EClass:
    sort, value = key
    tensor_value = value if sort == "Tensor" else tables.memory.get(value)
    return EClass(
        sort="tensor" if sort == "Tensor" else "kernel",
        nodes=tuple(dict.fromkeys(term.numbered(numbers) for term in tables.terms.get(key, ()))),
        struct_info=infos.of(key),
        is_const=tensor_value in tables.constants,
        scalar=None if tensor_value is None else tables.scalars.get(tensor_value),
    )


def _numbering(roots: Iterable[Key], terms: Mapping[Key, list[Term]]) -> dict[Key, ClassId]:
    """Numbers in breadth-first order."""
    order = list(dict.fromkeys(roots))
    numbers = {key: k for k, key in enumerate(order)}
    for key in order:
        for term in terms.get(key, ()):
            for child in term.classes:
                if child not in numbers:
                    numbers[child] = len(order)
                    order.append(child)
    return numbers


class _Infos:
    """Struct info by class: from facts, else from what is known, else from the operators' rules."""

    def __init__(self, tables: Tables, known: Mapping[Key, TensorStructInfo]) -> None:
        self._tables, self._known = tables, known
        self._found: dict[Key, TensorStructInfo] = {}

    def of(self, key: Key) -> TensorStructInfo:
        if key not in self._found:
            self._found[key] = _UNKNOWN  # ends the recursion on a cycle
            self._found[key] = self._info(key)
        return self._found[key]

    def _info(self, key: Key) -> TensorStructInfo:
        sort, value = key
        if sort == "Kernel" and value in self._tables.memory:
            return self.of(("Tensor", self._tables.memory[value]))
        shape, dtype = self._tables.shapes.get(value), self._tables.dtypes.get(value)
        if sort == "Tensor" and shape is not None and dtype is not None:
            return tensor(shape, dtype)
        if key in self._known:
            known = self._known[key]
            if shape is not None:
                return tensor(shape, dtype or known.dtype)
            return TensorStructInfo(known.shape, dtype or known.dtype, known.ndim)
        if sort == "Tensor" and (shape is not None or dtype is not None):
            return tensor(shape, dtype, self._tables.ranks.get(value, -1))
        derived = (self._derived(term) for term in self._tables.terms.get(key, ()))
        return next((info for info in derived if isinstance(info, TensorStructInfo)), _UNKNOWN)

    def _derived(self, term: Term) -> StructInfo | None:
        if term.op not in operators():
            return None
        infos = [self.of(c) if isinstance(c, tuple) else c for c in term.children]
        try:
            return operators()[term.op].op.rule(*infos, **dict(term.attrs))
        except IllTyped:
            return None
