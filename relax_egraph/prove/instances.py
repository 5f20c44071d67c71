"""The general instances of a rule, and of what its terms equate."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

from relax_egraph.egraph.rulebook.forms import Atom, Form, Tree, heads, variables, written
from relax_egraph.egraph.rulebook.rule import Direction
from relax_egraph.egraph.rulebook.vocabulary import operators
from relax_egraph.errors import IllTyped, SaturationError
from relax_egraph.ir.dims import Dim
from relax_egraph.prove.choices import Choices, Impossible, runs
from relax_egraph.prove.comparison import NotProven
from relax_egraph.prove.dtypes import Dtypes
from relax_egraph.prove.effort import Effort, Pass
from relax_egraph.prove.extents import Again, Extents
from relax_egraph.prove.layouts import ON_IMAGES
from relax_egraph.prove.matching import Matching
from relax_egraph.prove.reals import Comparison
from relax_egraph.prove.typing import IllFormed, Typing
from relax_egraph.prove.unfolding import ROUNDED

T = TypeVar("T")

NONE = "no general instance was found"

UNFORESEEN = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError),
    SaturationError,
)
"""Errors of operators' definitions on symbols for which they are not made."""

_OF_TERMS = re.compile(r"[][<>{}|,;:*+=]")
"""What proofs write between names; one text would be of two terms if it were in a name."""

MOST_SOLVED = 60
"""The most extents of one instance that are solved for."""


def every_run(
    function: Callable[[Choices], T], facts: Sequence[Tree], terms: Iterable[Tree], one: Pass
) -> Iterator[T | None]:
    """The results of `function` for all choices; first without dtypes of which few axes will do.

    An element's formula has no rank in it: such dtypes have more axes only where no instance of few
    axes has them, and if the rule looks at dtypes; else those of 32 bits stand for them.
    """
    trees = (*facts, *terms)
    for name in sorted(variables(trees)):
        if _OF_TERMS.search(name):
            raise NotProven(f"the variable {name} reads like a term of proofs; give it letters")
    yield from runs(function)
    if not any(map(_looks_at_dtypes, trees)):
        return
    effort = one.effort
    for asked in one.seen_of(facts).missing.items():
        one.only, one.effort = asked, Effort(one.steps)
        try:
            yield from runs(function)
        finally:
            one.only, one.effort = None, effort


def general(
    facts: Sequence[Tree],
    terms: Sequence[Tree],
    choices: Choices,
    dtypes: Dtypes,
    one: Pass,
    make: Callable[[Matching], T],
) -> T:
    """What `make` makes, of `terms`, of the general instance of `facts` with these choices.

    Raises `Impossible` if there is none, or if a pass before this `one` had it.
    """
    solved: dict[str, Dim] = choices.known or {}
    for _ in range(MOST_SOLVED):
        one.effort.spend(1)
        extents = Extents(choices, dict(solved))
        numbers: list[Comparison] = []
        typing = Typing(extents, choices, [], numbers)
        matching = Matching(facts, terms, choices, extents, typing, dtypes, one, numbers)
        try:
            matching.run()
            matching.assumed, matching.on_right = False, True
            made = _made(make, matching)
        except Again:
            solved = extents.solved
            choices.note(solved)
        except IllTyped as problem:
            raise IllFormed(str(problem)) from None
        else:
            if matching.most_axes <= one.above:
                raise Impossible
            if one.only is None:
                matching.seen.had |= matching.named
            elif matching.named.isdisjoint((one.only[0], d) for d in one.only[1]):
                raise Impossible
            return made
    raise NotProven("its extents depend on each other")


def _made(make: Callable[[Matching], T], matching: Matching) -> T:
    """What is made of an instance: there is no instance without a term that the rule makes."""
    try:
        return make(matching)
    except Impossible:
        raise IllFormed("a term that the rule makes has no value") from None


@lru_cache(1 << 12)
def _looks_at_dtypes(tree: Tree) -> bool:
    """Whether a term is of a certain dtype, or depends on one by more than its operator."""
    if isinstance(tree, Atom):
        return False
    name = tree.head.removeprefix("R.")
    attrs = operators()[name].op.attrs if tree.head.startswith("R.") and name in operators() else ()
    said = zip(reversed(attrs), reversed(tree.items), strict=False)
    of_dtype = any(a.name in ("dtype", "out_dtype") and written(t) != '""' for a, t in said)
    return tree.head in _OF_DTYPES or of_dtype or any(map(_looks_at_dtypes, tree.items[1:]))


_OF_DTYPES = frozenset(("dtype-of", "dtype-holds", "const-scalar", "is-number", ROUNDED, "R.const"))


def equations_of(direction: Direction) -> list[tuple[Tree, Tree]]:
    """The terms that a rule equates, with the terms that it names by ``let`` in place."""
    lets = direction.lets
    pairs = [(inlined(a, lets), inlined(b, lets)) for a, b in direction.unions]
    for row in direction.rows:
        if row.head == "const-scalar" and row.value is not None:
            pairs.append((row.args[0], inlined(row.value, lets)))
    return pairs


def inlined(tree: Tree, lets: dict[str, Tree]) -> Tree:
    """`tree`, with the terms that it names by ``let`` in place."""
    if isinstance(tree, Atom):
        return inlined(lets[tree.text], lets) if tree.text in lets else tree
    first, *rest = tree.items
    return Form((first, *(inlined(t, lets) for t in rest)), tree.start, tree.end)


def rank_of_images(direction: Direction) -> int:
    """The greatest rank of the images that a rule is about; 0 if there are none."""
    terms = (*direction.body, *(t for pair in equations_of(direction) for t in pair))
    names = {h[2:] for t in terms for h in heads(t) if h.startswith("R.")}
    return max((len(ON_IMAGES[n].letters) for n in names if n in ON_IMAGES), default=0)
