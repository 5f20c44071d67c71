"""Which classes may be worth making by one kernel: a few for each, so that they grow linearly.

* One that is on the way to another and is needed elsewhere too: it is stored as it is passed.
* Those that read the same tensor, which is then read once.
* Those of one shape that wait for equally much: a kernel less is launched.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from relax_egraph.egraph.view import STORE, ClassId, View
from relax_egraph.extract.cut import Cut
from relax_egraph.extract.first import First
from relax_egraph.extract.ways import Ways

Pair = tuple[ClassId, ClassId]
"""Two classes; the first does not need the second."""

_USERS = 3
"""How many of those that it is on the way to a class is paired with."""

_NEAR = 8
"""How far behind it in a group a partner is looked for."""


def pairs_of(view: View, ways: Ways, first: First, cuts: Mapping[ClassId, Cut]) -> list[Pair]:
    """The pairs, each once; `cuts` are the kernels of the first program."""
    found = {frozenset(pair): pair for pair in _on_the_way(view, ways, first, cuts)}
    place = {c: number for number, c in enumerate(first.ways)}
    groups = [*_readers(ways, first), *_alike(view, first)]
    for group in groups:
        kernels = sorted((c for c in group if c in cuts), key=lambda c: (first.level[c], place[c]))
        found.update((frozenset(pair), pair) for pair in _near(kernels, first))
    return list(found.values())


def _on_the_way(
    view: View, ways: Ways, first: First, cuts: Mapping[ClassId, Cut]
) -> Iterator[Pair]:
    """What kernels read or compute before their result, with that; if it has other uses."""
    memory = {n.classes[0]: c for c in ways.of for n in view.classes[c].nodes if n.op == STORE}
    users: dict[ClassId, list[ClassId]] = {}
    for c, cut in cuts.items():
        inner = (memory.get(term.owner, c) for term, _ in cut.steps if term.seconds > 0)
        for d in dict.fromkeys((*cut.leaves, *inner)):
            if d != c and d in first.ways:
                users.setdefault(d, []).append(c)
    roots = frozenset(view.roots)
    for d, found in users.items():
        if d in roots or len(found) > 1 or len(first.readers.get(d, ())) > 1:
            yield from ((d, c) for c in islice(found, _USERS) if not first.needs(d, c))


def _readers(ways: Ways, first: First) -> list[list[ClassId]]:
    """The classes that read one tensor, for each tensor, the dearest to read first."""
    seconds = ways.loads.seconds
    read = [d for d, readers in first.readers.items() if len(readers) > 1 and seconds[d] > 0]
    return [first.readers[d] for d in sorted(read, key=lambda d: -seconds[d])]


def _alike(view: View, first: First) -> list[list[ClassId]]:
    """The classes of one shape and level, for each of these."""
    groups: dict[object, list[ClassId]] = {}
    for c in first.ways:
        key = (view.classes[c].struct_info.dims, first.level[c])
        groups.setdefault(key, []).append(c)
    return list(groups.values())


def _near(group: Sequence[ClassId], first: First) -> Iterator[Pair]:
    """Each of `group` with the next one that does not wait for it: pairs that join to groups."""
    for number, a in enumerate(group):
        behind = group[number + 1 : number + 1 + _NEAR]
        yield from islice(((a, b) for b in behind if not first.needs(b, a)), 1)
