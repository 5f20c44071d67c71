"""Pairs of classes that one kernel might produce together: a few per class, so linear in number.

* An intermediate value of a kernel that other kernels read too: the kernel stores it.
* Classes that read the same tensor: it is read once.
* Classes of one shape and one level: one launch is saved.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from relax_egraph.egraph.node import STORE
from relax_egraph.egraph.view import ClassId, View
from relax_egraph.extract.choices import ChoiceTable
from relax_egraph.extract.cut import Cut
from relax_egraph.extract.initial import InitialProgram

Pair = tuple[ClassId, ClassId]
"""Two classes; the first does not depend on the second."""

_USERS = 3
"""How many of the kernels that compute it on the way a class is paired with."""

_NEAR = 8
"""How far apart in a group the classes of a pair may be."""


def pairs_of(
    view: View, table: ChoiceTable, initial: InitialProgram, cuts: Mapping[ClassId, Cut]
) -> list[Pair]:
    """The pairs, each once; `cuts` are the kernels of the initial program."""
    pairs = {frozenset(pair): pair for pair in _intermediates(view, table, initial, cuts)}
    place = {c: number for number, c in enumerate(initial.choices)}
    groups = [*_readers(table, initial), *_of_one_level(view, initial)]
    for group in groups:
        kernels = sorted(
            (c for c in group if c in cuts), key=lambda c: (initial.level[c], place[c])
        )
        pairs.update((frozenset(pair), pair) for pair in _neighbours(kernels, initial))
    return list(pairs.values())


def _intermediates(
    view: View, table: ChoiceTable, initial: InitialProgram, cuts: Mapping[ClassId, Cut]
) -> Iterator[Pair]:
    """Values that kernels read or compute on the way, with the result, if they have other uses."""
    memory = {
        n.operands[0]: c for c in table.by_class for n in view.classes[c].nodes if n.op == STORE
    }
    users: dict[ClassId, list[ClassId]] = {}
    for c, cut in cuts.items():
        inner = (memory.get(term.owner, c) for term, _ in cut.steps if term.seconds > 0)
        for d in dict.fromkeys((*cut.leaves, *inner)):
            if d != c and d in initial.choices:
                users.setdefault(d, []).append(c)
    roots = frozenset(view.roots)
    for d, kernels in users.items():
        if d in roots or len(kernels) > 1 or len(initial.readers.get(d, ())) > 1:
            yield from ((d, c) for c in islice(kernels, _USERS) if not initial.needs(d, c))


def _readers(table: ChoiceTable, initial: InitialProgram) -> list[list[ClassId]]:
    """The readers of each tensor that has several, the most expensive tensor first."""
    seconds = table.loads.seconds
    read = [d for d, readers in initial.readers.items() if len(readers) > 1 and seconds[d] > 0]
    return [initial.readers[d] for d in sorted(read, key=lambda d: -seconds[d])]


def _of_one_level(view: View, initial: InitialProgram) -> list[list[ClassId]]:
    """The classes grouped by shape and level."""
    groups: dict[object, list[ClassId]] = {}
    for c in initial.choices:
        key = (view.classes[c].struct_info.dims, initial.level[c])
        groups.setdefault(key, []).append(c)
    return list(groups.values())


def _neighbours(group: Sequence[ClassId], initial: InitialProgram) -> Iterator[Pair]:
    """Each of `group` with the next one that does not depend on it; pairs are merged later."""
    for number, a in enumerate(group):
        behind = group[number + 1 : number + 1 + _NEAR]
        yield from islice(((a, b) for b in behind if not initial.needs(b, a)), 1)
