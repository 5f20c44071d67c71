"""Chains of rules: one that equates values, then rules that deduce a premise of the one before."""

from collections.abc import Sequence
from functools import cache
from random import Random

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Direction
from relax_egraph.verify.instances.makers import NATIVE, makers_of, reads_of
from relax_egraph.verify.instances.problem import Contradiction
from relax_egraph.verify.instances.resolve import problem_of
from relax_egraph.verify.instances.unfold import unfold

_ATTEMPTS = 8
"""Contradictory unfoldings of a chain after which the chain counts as impossible."""


def chains_to(pattern: Direction, book: RuleBook) -> list[tuple[Direction, ...]]:
    """A chain of two for each rule that equates values and reads a relation that `pattern` deduces.

    If `pattern` equates values itself, it is one more chain alone.  Without any of these, the only
    chain is `chain_to`, which may be empty.
    """
    makers = makers_of(book)
    deduced = {row.head for row in pattern.rows} - NATIVE
    readers = dict.fromkeys(p for p in makers.uniting if p is not pattern and deduced & reads_of(p))
    chains: list[tuple[Direction, ...]] = [(reader, pattern) for reader in readers]
    if pattern.unites:
        chains.append((pattern,))
    return chains or [chain_to(pattern, book)]


def chain_to(pattern: Direction, book: RuleBook) -> tuple[Direction, ...]:
    """A shortest chain to `pattern` of rules that can match together; empty if there is none.

    If the rules of every chain contradict each other, it is a shortest contradictory chain.
    """
    makers = makers_of(book)
    chains: list[tuple[Direction, ...]] = [(pattern,)]
    contradictory: tuple[Direction, ...] = ()
    seen = set[str]()
    for chain in chains:
        first = chain[0]
        if first.name in seen:
            continue
        if not can_match(chain, book):
            contradictory = contradictory or chain * first.unites
            continue
        if first.unites:
            return chain
        seen.add(first.name)
        deduced = {row.head for row in first.rows}
        readers = [p for name in makers.of for p, _ in makers.of[name]] + list(makers.uniting)
        readers = [p for p in readers if p.name not in seen and deduced & reads_of(p)]
        chains += [(p, *chain) for p in sorted(readers, key=lambda p: not p.unites)]
    return contradictory


def can_match(chain: Sequence[Direction], book: RuleBook) -> bool:
    """Whether the rules of `chain` can match together, judged by their literals.

    A rule that reads a fact about ``uint8`` cannot match with one that deduces it for ``int8``, nor
    one that reads a bound of 0 with one that deduces -1.
    """
    if len(chain) == 1:
        return True
    makers, declarations = makers_of(book), book.declarations
    for seed in range(_ATTEMPTS):
        random = Random(seed)
        try:
            problem_of(unfold(chain, makers, random, frozenset()).query, declarations, random)
        except Contradiction:
            continue
        return True
    return False


@cache
def deduced_by_none(chain: Sequence[Direction], book: RuleBook) -> str:
    """A relation that `chain` reads and no rule of `book` deduces; empty if there is none."""
    makers, declarations = makers_of(book), book.declarations
    for name in (name for pattern in chain for name in pattern.reads):
        relation = name in declarations and declarations[name].result == "Unit"
        if relation and name not in NATIVE and name not in makers.of:
            return name
    return ""
