"""Reading back of a saturated e-graph as a view."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from relax_egraph.egraph.node import Node
from relax_egraph.egraph.readback.tables import Key, Tables
from relax_egraph.egraph.saturation.infos import Infos
from relax_egraph.egraph.view import ClassId, EClass, View
from relax_egraph.ir.struct_info import TensorStructInfo

_UNKNOWN = TensorStructInfo()


@dataclass(frozen=True, slots=True)
class ReadBack:
    """A view of an e-graph, and the class in it of each class of the loaded view.

    Classes that no root needs are in neither.
    """

    view: View
    became: Mapping[ClassId, ClassId]


def read_back(tables: Tables, loaded: View) -> ReadBack:
    """The classes that the roots of `loaded` need, numbered in a fixed order from the roots.

    Subsumed nodes, names of loaded values, and nodes over their own class are left out.
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
    """The classes that `roots` need, and their numbers; `known` has struct info besides facts."""
    numbers = numbering(roots, tables.nodes)
    infos = Infos(tables, known)
    classes = {n: _class(key, tables, infos, numbers) for key, n in numbers.items()}
    return classes, numbers


def _class(key: Key, tables: Tables, infos: Infos, numbers: Mapping[Key, ClassId]) -> EClass:
    sort, value = key
    own = tables.nodes.get(key, ())
    nodes = tuple(dict.fromkeys(node.over(numbers.__getitem__) for node in own))
    if sort == "Tuple":
        return EClass("tuple", nodes, _UNKNOWN)
    info = infos.of(key)
    tensor_value = value if sort == "Tensor" else tables.memory.get(value)
    return EClass(
        sort="tensor" if sort == "Tensor" else "kernel",
        nodes=nodes,
        struct_info=info if isinstance(info, TensorStructInfo) else _UNKNOWN,
        is_const=tensor_value in tables.constants,
        scalar=None if tensor_value is None else tables.scalars.get(tensor_value),
        magnitude=tables.magnitudes.get(value) if sort == "Tensor" else None,
    )


def numbering(roots: Iterable[Key], nodes: Mapping[Key, list[Node[Key]]]) -> dict[Key, ClassId]:
    """Numbers of the classes that `roots` need, in breadth-first order."""
    order = list(dict.fromkeys(roots))
    numbers = {key: k for k, key in enumerate(order)}
    for key in order:
        for node in nodes.get(key, ()):
            for child in node.operands:
                if child not in numbers:
                    numbers[child] = len(order)
                    order.append(child)
    return numbers
