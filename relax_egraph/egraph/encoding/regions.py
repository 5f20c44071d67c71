"""Partition of a dataflow block into regions, each small enough to be optimized by itself.

A region is a smaller block.  Any cut of a topological order of the bindings is correct.  A good
cut is crossed by few values, which would be in memory in any case.  The cost of a cut depends on
its neighbourhood only, so that repeated layers are cut at the same places.
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
"""The most bindings of a region: about two layers of a transformer from a usual exporter."""

_APART = 1e6
"""The cost of a cut between a tuple and its fields, as rules would not see the tuple's operator."""


@dataclass(frozen=True, slots=True)
class Region:
    """Bindings in topological order, and the variables that are read outside of the region."""

    bindings: tuple[Binding, ...]
    outputs: tuple[Var, ...]


def regions_of(
    bindings: Sequence[Binding],
    outputs: Sequence[Var],
    size: int = SIZE,
    refusing: Collection[Var] = (),
) -> tuple[Region, ...]:
    """Cut `bindings`, which compute `outputs`, into regions of about `size`, in execution order.

    Every match_cast, and the bindings of `refusing`, may fail at run time: they stay in order.  A
    block of up to `size` bindings is one region, unchanged.  A larger block loses unused bindings;
    a computation on constants is copied into each region that needs it; values that are read all
    over the block are computed in the first region.  Guards against NaN do not count: where they
    are redundant, regions are as without them.
    """
    if len(bindings) <= size:
        return (Region(tuple(bindings), tuple(outputs)),)
    block = _Block(bindings, outputs, refusing)
    if len(bindings) - len(block.guards) <= size:
        return (Region(tuple(bindings), tuple(outputs)),)
    members = set(block.needs) - block.shared
    ahead = _ahead(block, block.depth_first(block.roots, members), size)
    body = block.depth_first(block.roots, members - ahead)
    places = [0, *_cuts(block, body, size), len(body)]
    parts = [sorted(ahead), *(body[a:b] for a, b in pairwise(places))]
    return tuple(_regions(block, [part for part in parts if part]))


def binders_of(bindings: Sequence[Binding]) -> dict[str, MatchCast]:
    """The match_cast that binds each symbol, for symbols that are unknown before `bindings`."""
    if not any(map(binds_symbols, bindings)):
        return {}
    first: dict[str, Binding] = {}
    for binding in bindings:
        for name in sorted(_mentioned(binding)):
            first.setdefault(name, binding)
    return {name: b for name, b in first.items() if isinstance(b, MatchCast) and binds_symbols(b)}


def _mentioned(binding: Binding) -> frozenset[str]:
    """The symbols that must be bound before `binding` runs, or that it binds."""
    symbols = symbols_in(binding.value) | symbols_of(binding.var.struct_info)
    return symbols | symbols_of_cast(binding) if isinstance(binding, MatchCast) else symbols


class _Block:
    """Bindings by number; `needs` are the bindings that each reads, or that must run before it.

    A binding runs after the binders of its symbols; `checks`, which may fail, run in order.
    `shared` are computations on constants, and tensors without operands.  `guards` are tests for
    NaN, and choices between a number and a value that was tested.
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
        self.guards: set[int] = set()
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
            tested = _calls(binding, "where") and not self.guards.isdisjoint(reads)
            if tested or _calls(binding, "isnan"):
                self.guards.add(k)
        self.roots = [*dict.fromkeys([*checks, *(maker[v] for v in outputs)])]

    def _is_shared(self, k: int, binding: Binding) -> bool:
        """Whether to copy a binding into each region that reads it, at no cost at run time.

        Computations on constants are folded or shared again later.
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
        """The `members` that `roots` need, in topological order, operands close to their users.

        The operand with the deepest computation comes first.  The fields of a tuple follow it.
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
    reached = set(todo)
    while todo:
        new = [n for n in needs[todo.pop()] if n not in reached]
        reached.update(new)
        todo += new
    return reached


@dataclass(frozen=True, slots=True)
class _Life:
    """The live range of a value: its definition and last use in an order, and its users."""

    begin: int
    end: int
    users: list[int]


def _lives(block: _Block, body: Sequence[int]) -> dict[int, _Life]:
    """The live ranges of the values of `body` that are read in it."""
    place = {k: p for p, k in enumerate(body)}
    users: dict[int, list[int]] = {}
    for k in body:
        for n in block.needs[k]:
            if n in place:
                users.setdefault(n, []).append(k)
    return {k: _Life(place[k], max(map(place.__getitem__, u)), u) for k, u in users.items()}


def _ahead(block: _Block, body: Sequence[int], size: int) -> set[int]:
    """The computations of long-lived values of `body`, if they are small: the first region.

    A value is long-lived if its live range is longer than a region.  Without its computation, the
    first of several layers that read it is like the others.
    """
    ahead: set[int] = set()
    for k, life in _lives(block, body).items():
        if life.end - life.begin > size and (cone := _cone(block, k, size // 2)):
            ahead |= cone if len(ahead | cone) <= size else set()
    return ahead


def _cone(block: _Block, k: int, most: int) -> set[int]:
    """All bindings that `k` depends on, with fields of tuples; empty if they are too many."""
    todo, cone = [k], {k}
    while todo and len(cone) <= most:
        last = todo.pop()
        new = {*block.needs[last], *block.fields.get(last, ())} - cone - block.shared
        cone |= new
        todo += new
    return set() if todo or len(cone) > most else cone


def _cuts(block: _Block, body: Sequence[int], size: int) -> Iterator[int]:
    """The places in `body` before which a region begins."""
    cost = _costs(block, body, size)
    places = [p for p, k in enumerate(body) if k not in block.guards]
    begin = 0
    while len(places) - begin > size:
        candidates = range(begin + size // 2, begin + size + 1)
        begin = min(candidates, key=lambda c: (cost[places[c]], -c))
        yield places[begin]


def _costs(block: _Block, body: Sequence[int], size: int) -> list[float]:
    """The cost of a cut before each place of `body`: the weights of the values that cross it.

    A value that lives longer than a region crosses some cut in any case, and has no weight.
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
    """The cost of a value in memory that `users` read.

    The fewer the users, the higher the cost: a value with one user might be fused into its kernel.
    So might a value that all users read element by element, or reduce.
    """
    return 1 + 1 / len(users) + (not any(map(_reads_memory, users)))


def _calls(binding: Binding, name: str) -> bool:
    value = binding.value
    return isinstance(value, Call) and isinstance(value.op, Op) and value.op.name == name


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
        members = _reached(part, shared)  # operands of shared bindings are shared
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
