"""Dataflow blocks cut into regions, each small enough to be optimized by itself.

A region is a smaller block.  Any cut of an order in which the bindings can run is correct; good
is one that few values cross, and these would be in memory in any case.  What is good is judged
by the surroundings of the cut alone, so that repeated layers are cut alike.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from relax_egraph.egraph.binders import binds_symbols
from relax_egraph.egraph.encoding.encode import reads_of
from relax_egraph.ir.expr import Binding, Call, Constant, MatchCast, TupleGetItem, Var
from relax_egraph.ir.occurrences import shape_variables_of, symbols_in, symbols_of_cast
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import symbols_of

SIZE = 100
"""The bindings of a region at most: about two layers of a transformer, as exporters write them."""

_APART = 1e6
"""What it costs to part a tuple from its fields: rules would not see what they are."""


@dataclass(frozen=True, slots=True)
class Region:
    """Bindings in an order in which they can run, and which variables are read outside of them."""

    bindings: tuple[Binding, ...]
    outputs: tuple[Var, ...]


def regions_of(
    bindings: Sequence[Binding],
    outputs: Sequence[Var],
    size: int = SIZE,
    refusing: Collection[Var] = (),
) -> tuple[Region, ...]:
    """Cut `bindings`, which make `outputs`, into regions of about `size`, in order of execution.

    Those of `refusing`, and every match_cast, may refuse to run: they stay in their order.
    A block that is no larger is one region, as it stands.  Of a larger one, bindings that nothing
    needs are in no region; a computation on constants is in each that needs it; what is read all
    over the block is made ahead.
    """
    if len(bindings) <= size:
        return (Region(tuple(bindings), tuple(outputs)),)
    block = _Block(bindings, outputs, refusing)
    members = set(block.needs) - block.shared
    ahead = _ahead(block, block.depth_first(block.roots, members), size)
    body = block.depth_first(block.roots, members - ahead)
    places = [0, *_cuts(block, body, size), len(body)]
    parts = [sorted(ahead), *(body[a:b] for a, b in pairwise(places))]
    return tuple(_regions(block, [part for part in parts if part]))


def binders_of(bindings: Sequence[Binding]) -> dict[str, MatchCast]:
    """The match_cast that binds each symbol, for symbols that are not known before `bindings`."""
    if not any(map(binds_symbols, bindings)):
        return {}
    first: dict[str, Binding] = {}
    for binding in bindings:
        for name in sorted(_mentioned(binding)):
            first.setdefault(name, binding)
    return {name: b for name, b in first.items() if isinstance(b, MatchCast) and binds_symbols(b)}


def _mentioned(binding: Binding) -> frozenset[str]:
    """The symbols that must be bound before `binding` runs, or that it binds."""
    found = symbols_in(binding.value) | symbols_of(binding.var.struct_info)
    return found | symbols_of_cast(binding) if isinstance(binding, MatchCast) else found


class _Block:
    """Bindings by number; `needs` are those that each reads, or that must run before it.

    These bind its symbols; or both are of `checks`, which may refuse.  `shared` are computations
    on constants, and tensors made of nothing.
    """

    def __init__(
        self, bindings: Sequence[Binding], outputs: Sequence[Var], refusing: Collection[Var]
    ) -> None:
        self.bindings = bindings
        refuses = [isinstance(b, MatchCast) or b.var in refusing for b in bindings]
        checks = [k for k, itself in enumerate(refuses) if itself]
        before = dict(zip(checks[1:], checks, strict=False))
        self.checks = frozenset(checks)
        self.outputs = frozenset(outputs)
        self.shared: set[int] = set()
        self.needs: dict[int, tuple[int, ...]] = {}
        self.fields: dict[int, list[int]] = {}
        maker = {b.var: k for k, b in enumerate(bindings)}
        binders = {name: maker[b.var] for name, b in binders_of(bindings).items()}
        for k, binding in enumerate(bindings):
            reads = [maker[v] for v in reads_of(binding) if isinstance(v, Var) and v in maker]
            if binders:
                bound = (binders[s] for s in sorted(_mentioned(binding)) if s in binders)
                reads += (b for b in bound if b != k)
            if k in before:
                reads.append(before[k])
            self.needs[k] = tuple(dict.fromkeys(reads))
            if isinstance(binding.value, TupleGetItem) and reads:
                self.fields.setdefault(reads[0], []).append(k)
            if self._is_shared(k, binding):
                self.shared.add(k)
        self.roots = [*dict.fromkeys([*checks, *(maker[v] for v in outputs)])]

    def _is_shared(self, k: int, binding: Binding) -> bool:
        """Whether each region is to have a binding of its own, which costs nothing at run time.

        Computations on constants are folded, or found to be the same again, later.
        """
        match binding.value:
            case Constant():
                is_known = True
            case Call(op=Op(intrinsic=False, pure=True)) | TupleGetItem():
                outside = [v for v in reads_of(binding) if isinstance(v, Var)]
                is_known = len(outside) == len(self.needs[k])
            case _:
                is_known = False
        if not is_known or k in self.checks or binding.var in self.outputs:
            return False
        below = self.needs[k]
        if not below:
            return True
        static = not any(map(self._is_symbolic, (k, *below)))
        return static and self.shared.issuperset(below)

    def _is_symbolic(self, k: int) -> bool:
        return bool(symbols_of(self.bindings[k].var.struct_info))

    def depth_first(self, roots: Iterable[int], members: set[int]) -> list[int]:
        """The `members` that `roots` need, what is needed near to what needs it.

        Of several operands that which takes the longest to make comes first; so do its own.  The
        fields of a tuple follow it.
        """
        depth: dict[int, int] = {}
        needs: dict[int, list[int]] = {}
        for k in sorted(members):
            needs[k] = [n for n in self.needs[k] if n in members]
            depth[k] = 1 + max((depth[n] for n in needs[k]), default=0)
        needed = _reached((r for r in roots if r in members), needs)
        order: dict[int, None] = {}
        for root in sorted((r for r in roots if r in members), key=lambda r: depth[r]):
            stack = [root]
            while stack:
                k = stack[-1]
                waiting = [n for n in needs[k] if n not in order]
                if k in order or not waiting:
                    stack.pop()
                    order[k] = None
                    order.update(
                        (f, None)
                        for f in self.fields.get(k, ())
                        if f in needed and all(n in order for n in needs[f])
                    )
                else:
                    stack.append(max(waiting, key=lambda n: depth[n]))
        return list(order)


def _reached(roots: Iterable[int], needs: Mapping[int, Iterable[int]]) -> set[int]:
    todo = list(roots)
    found = set(todo)
    while todo:
        new = [n for n in needs[todo.pop()] if n not in found]
        found.update(new)
        todo += new
    return found


@dataclass(frozen=True, slots=True)
class _Life:
    """Where in an order a value is made and last read, and who reads it."""

    begin: int
    end: int
    users: list[int]


def _lives(block: _Block, body: Sequence[int]) -> dict[int, _Life]:
    """The lives of the values of `body` that are read in it."""
    place = {k: p for p, k in enumerate(body)}
    users: dict[int, list[int]] = {}
    for k in body:
        for n in block.needs[k]:
            if n in place:
                users.setdefault(n, []).append(k)
    return {k: _Life(place[k], max(map(place.__getitem__, u)), u) for k, u in users.items()}


def _ahead(block: _Block, body: Sequence[int], size: int) -> set[int]:
    """What makes the values of `body` that live longer than a region, where that is little.

    The first of several layers that read such a value then is as the others are.
    """
    found: set[int] = set()
    for k, life in _lives(block, body).items():
        if life.end - life.begin > size and (cone := _cone(block, k, size // 2)):
            found |= cone if len(found | cone) <= size else set()
    return found


def _cone(block: _Block, k: int, most: int) -> set[int]:
    """All that is needed to make `k`, with the fields of tuples; empty if that is too much."""
    todo, found = [k], {k}
    while todo and len(found) <= most:
        last = todo.pop()
        new = {*block.needs[last], *block.fields.get(last, ())} - found - block.shared
        found |= new
        todo += new
    return set() if todo or len(found) > most else found


def _cuts(block: _Block, body: Sequence[int], size: int) -> Iterator[int]:
    """The places in `body` before which a region begins."""
    cost = _costs(block, body, size)
    begin = 0
    while len(body) - begin > size:
        begin = min(range(begin + size // 2, begin + size + 1), key=lambda p: (cost[p], -p))
        yield begin


def _costs(block: _Block, body: Sequence[int], size: int) -> list[float]:
    """What it costs to cut before each place of `body`: the values that cross there.

    A value that lives longer than a region crosses in any case, and is not counted.
    """
    change = [0.0] * (len(body) + 1)
    lives = _lives(block, body)
    for k, life in lives.items():
        if life.end - life.begin <= size:
            weight = _weight([block.bindings[u] for u in life.users])
            change[life.begin + 1] += weight
            change[life.end + 1] -= weight
        if fields := [u for u in life.users if u in block.fields.get(k, ())]:
            change[life.begin + 1] += _APART
            change[life.begin + 1 + len(fields)] -= _APART  # they follow at once
    return list(accumulate(change))


def _weight(users: Sequence[Binding]) -> float:
    """What it costs to have a value in memory, that `users` read.

    The fewer they are, the more is lost: a value of one user might be a step in one kernel with
    it.  So might one that all read element by element, or reduce.
    """
    return 1 + 1 / len(users) + (not any(map(_reads_memory, users)))


def _reads_memory(user: Binding) -> bool:
    """Whether `user` reads elements more than once: a product, a convolution, a norm, a gather."""
    value = user.value
    if not isinstance(value, Call) or not isinstance(value.op, Op) or value.op.elementwise:
        return False
    return sum(operand.kind == "tensor" for operand in value.op.operands) > 1


def _regions(block: _Block, parts: Sequence[Sequence[int]]) -> Iterator[Region]:
    where = {k: number for number, part in enumerate(parts) for k in part}
    crossing = {
        n for k, number in where.items() for n in block.needs[k] if where.get(n, number) != number
    }
    shared = {k: [n for n in needs if n in block.shared] for k, needs in block.needs.items()}
    for part in parts:
        members = _reached(part, shared)  # what makes shared values is shared
        read = [k for k in part if k in crossing or block.bindings[k].var in block.outputs]
        named = frozenset[Var]().union(
            *(shape_variables_of(block.bindings[k].var.struct_info) for k in read)
        )
        shapes = [k for k in part if block.bindings[k].var in named]
        results = list(dict.fromkeys([*shapes, *read]))
        checks = [k for k in sorted(part) if k in block.checks]
        order = block.depth_first([*checks, *results], members)
        yield Region(
            tuple(block.bindings[k] for k in order),
            tuple(block.bindings[k].var for k in results),
        )
