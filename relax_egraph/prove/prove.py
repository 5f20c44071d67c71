"""Proves that both sides of a rule are equal for all extents, in every general instance."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import process_time

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Atom, Form, Tree, heads, written
from relax_egraph.egraph.rulebook.rule import Direction, Rule
from relax_egraph.errors import IllTyped, SaturationError
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.prove.attributes import Open
from relax_egraph.prove.bindings import Unbound
from relax_egraph.prove.choices import Choices, runs
from relax_egraph.prove.comparison import Comparing, NotProven
from relax_egraph.prove.conditions import Condition
from relax_egraph.prove.effort import Effort, TooSlow
from relax_egraph.prove.extents import Again, Extents
from relax_egraph.prove.layouts import ON_IMAGES
from relax_egraph.prove.matching import Matching
from relax_egraph.prove.nodes import Leaf, Value, shape_of
from relax_egraph.prove.reading import NotExpressible
from relax_egraph.prove.reals import Comparison
from relax_egraph.prove.typing import IllFormed, Typing
from relax_egraph.prove.unfolding import Recursive, Unfolded, unfolded
from relax_egraph.prove.verdict import Status, Verdict
from relax_egraph.verify.instances.makers import makers_of

RANKS = ((4, 12000), (3, 4000), (2, 20000))
"""The largest rank of operands, and the steps of a proof; with too few steps, the rank is less.

Operands of a rule about images have the rank of these, where that is greater.
"""


@dataclass
class Counts:
    """What the proof of one rule took."""

    forms: int = 0
    queries: int = 0
    ranks: set[int] = field(default_factory=set[int])


UNFORESEEN = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError),
    SaturationError,
)
"""Errors of operators' definitions on symbols for which they are not made."""

NONE = "no general instance was found"

MOST_SOLVED = 60
"""The most extents of one instance that are solved for."""


def prove(rule: Rule, book: RuleBook) -> Verdict:
    """The verdict on one rule, for operands of as many axes as there is time for."""
    begin = process_time()
    verdict = None
    least = max((rank_of_images(d) for d in rule.directions), default=0)
    for ranks, steps in RANKS:
        try:
            verdict = _prove(rule, book, max(ranks, least), Effort(steps))
        except TooSlow:
            continue
        if verdict.reason == NONE and ranks < RANKS[0][0]:
            verdict = None  # it takes more axes, and for those too many steps
        break
    verdict = verdict or Verdict(rule, "not proven", "it has too many general instances")
    return replace(verdict, seconds=process_time() - begin)


def _prove(rule: Rule, book: RuleBook, ranks: int, effort: Effort) -> Verdict:
    counts = Counts()

    def verdict(status: Status, reason: str = "") -> Verdict:
        seen = tuple(sorted(counts.ranks))
        return Verdict(rule, status, reason, seen, counts.forms, counts.queries)

    try:
        for direction in rule.directions:
            for way in unfolded(direction, makers_of(book)):
                _prove_way(direction, way, counts, ranks, effort)
    except NotExpressible as reason:
        return verdict("not expressible", str(reason))
    except (NotProven, IllFormed) as reason:
        return replace(verdict("not proven", str(reason)), differs=True)
    except (Open, Recursive, Unbound) as reason:
        return verdict("not proven", str(reason))
    except UNFORESEEN as problem:
        return verdict("not proven", f"the proof ends in {type(problem).__name__}: {problem}")
    if not counts.forms:
        return verdict("not proven", NONE)
    return verdict("proven")


def _prove_way(
    direction: Direction, way: Unfolded, counts: Counts, ranks: int, effort: Effort
) -> None:
    pairs = equations_of(direction)
    dtypes = dtypes_of(way.facts, pairs)

    def run(choices: Choices) -> None:
        effort.spend(1)
        instance = general(way, pairs, choices, dtypes, ranks, effort)
        counts.forms += 1
        comparing = Comparing(instance.matching, effort, direction.rule.float_class == "exact")
        for where, condition in instance.needed:
            comparing.require(where, condition)
        for left, right in instance.pairs:
            comparing.compare(left, right)
        counts.queries += comparing.solver.count
        counts.ranks |= {len(s) for s in instance.shapes}

    for _ in runs(run):
        pass


@dataclass
class Instance:
    """A general instance, with the values that the rule equates."""

    matching: Matching
    pairs: list[tuple[Value, Value]]
    needed: list[tuple[str, Condition]]

    @property
    def shapes(self) -> list[tuple[object, ...]]:
        """The shapes of the operands."""
        return [shape_of(v) for v in self.matching.values.values() if isinstance(v, Leaf)]


def general(
    way: Unfolded,
    pairs: Sequence[tuple[Tree, Tree]],
    choices: Choices,
    dtypes: Sequence[str],
    ranks: int,
    effort: Effort,
) -> Instance:
    """The general instance of these choices."""
    solved: dict[str, Dim] = {}
    for _ in range(MOST_SOLVED):
        effort.spend(1)
        extents = Extents(choices, dict(solved))
        numbers: list[Comparison] = []
        typing = Typing(extents, choices, [], numbers)
        terms = tuple(b for _, b in pairs)
        matching = Matching(way.facts, terms, choices, extents, typing, dtypes, ranks, numbers)
        try:
            matching.run()
            matching.assumed = False
            made = [(matching.operand(a), matching.right(b)) for a, b in pairs]
            return Instance(matching, made, typing.needed)
        except Again:
            solved = extents.solved
        except IllTyped as problem:
            raise IllFormed(str(problem)) from None
    raise NotProven("its extents depend on each other")


def equations_of(direction: Direction) -> list[tuple[Tree, Tree]]:
    """The terms that a rule equates, with the terms that it names by ``let`` in place."""
    lets = direction.lets
    pairs = [(_inlined(a, lets), _inlined(b, lets)) for a, b in direction.unions]
    for row in direction.rows:
        if row.head == "const-scalar" and row.value is not None:
            pairs.append((row.args[0], _inlined(row.value, lets)))
    return pairs


def _inlined(tree: Tree, lets: dict[str, Tree]) -> Tree:
    if isinstance(tree, Atom):
        return _inlined(lets[tree.text], lets) if tree.text in lets else tree
    first, *rest = tree.items
    return Form((first, *(_inlined(t, lets) for t in rest)), tree.start, tree.end)


def rank_of_images(direction: Direction) -> int:
    """The greatest rank of the images that a rule is about; 0 if there are none."""
    terms = (*direction.body, *(t for pair in equations_of(direction) for t in pair))
    names = {h[2:] for t in terms for h in heads(t) if h.startswith("R.")}
    return max((len(ON_IMAGES[n].letters) for n in names if n in ON_IMAGES), default=0)


def dtypes_of(facts: Sequence[Tree], pairs: Sequence[tuple[Tree, Tree]]) -> tuple[str, ...]:
    """The dtypes that operands are tried with: a float stands for all, unless dtypes matter."""
    trees = [*facts, *(t for pair in pairs for t in pair)]
    names = {h for t in trees for h in heads(t)}
    text = " ".join(map(written, trees))
    if "dtype-holds" in names:
        return DTYPES
    applied = {h for h in names if h.startswith("R.")}
    if applied <= _MOVES | _IMAGES and not names & {"dtype-of", "is-float", "const-scalar"}:
        return ("float64",)
    floats = floats_of(text)
    if "count-matches" in names:
        return DTYPES
    return (
        *floats,
        "int32",
        "uint32",
        "bool",
        "int8",
        "int16",
        "int64",
        "uint8",
        "uint16",
        "uint64",
    )


def floats_of(text: str) -> tuple[str, ...]:
    """The floats that a rule says, and one that it does not."""
    floats = [d for d in ("float64", "float32", "float16", "bfloat16") if f'"{d}"' in text]
    others = [d for d in ("float64", "float32", "float16", "bfloat16") if d not in floats]
    return (*others[:1], *floats)


_MOVES = frozenset(
    f"R.{name}"
    for name in (
        *("permute_dims", "reshape", "broadcast_to", "concat", "stack", "split", "strided_slice"),
        *("flip", "expand_dims", "squeeze", "flatten", "nn.batch_flatten", "tile", "repeat"),
        *("tuple_get", "nn.pad"),
    )
)
"""Operators that move elements of any dtype alike."""

_IMAGES = frozenset(f"R.{name}" for name in ON_IMAGES)
"""Operators that are unknown functions of elements of any dtype."""
