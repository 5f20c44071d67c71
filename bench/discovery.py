"""Rules of the book that `rules discover` finds again: of families that it is not given.

Run from the top of the repository:
``python -m bench.discovery [FAMILIES] [--size N] [--seconds S] [--json FILE]``, or with ``--taso``.
The rules of the families that terms can state are written as equations of terms.  Each set of
operators in them is searched without the families.  A rule is found again if what stays of the book
and the rules found prove it in all worlds.  With ``--taso``, the operators of TASO are searched
without the book, and found equations are counted beside TASO's.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

from bench.stated import wanted
from relax_egraph import rules
from relax_egraph.discover.candidates import Candidate
from relax_egraph.discover.derivation import derived
from relax_egraph.discover.run import Found, Search, discover
from relax_egraph.discover.terms import Apply, Number, Term, parts, size_of

FAMILIES = ("canon", "algebra", "reductions", "shape")

TASO = Search(
    ("R.add", "R.multiply", "R.matmul", "R.permute_dims", "R.nn.relu", "R.concat"),
    3,
    families=(),
    variables=4,
    axes=(0, 1),
)
"""The operators of TASO (Jia et al., SOSP 2019) that terms can have, and its sums and joins.

It has convolutions, pools and splits besides, and publishes 157 pairs of equal graphs of up to 4
operators.
"""


def searches(stated: Sequence[Candidate], size: int) -> Iterator[Search]:
    """A search for each rule, with those that need nothing else; terms have up to `size`."""
    within = [e for e in stated if _size(e) <= size]
    sets = {frozenset((*_operators(e), *_numbers(e))) for e in within}
    for chosen in sorted((g for g in sets if not any(g < h for h in sets)), key=_names):
        some = [e for e in within if chosen.issuperset((*_operators(e), *_numbers(e)))]
        operators = dict.fromkeys(name for e in some for name in sorted(_operators(e)))
        numbers = dict.fromkeys(value for e in some for value in sorted(_numbers(e)))
        largest = max(map(_size, some))
        yield Search(tuple(sorted(operators)), largest, numbers=tuple(sorted(numbers)))


def _names(chosen: Iterable[str | float]) -> list[str]:
    return sorted(map(str, chosen))


def _size(equation: Candidate) -> int:
    return max(size_of(equation.left), size_of(equation.right))


def _operators(equation: Candidate) -> set[str]:
    return {part.head for part in _parts(equation) if isinstance(part, Apply)}


def _numbers(equation: Candidate) -> set[float]:
    return {part.value for part in _parts(equation) if isinstance(part, Number)}


def _parts(equation: Candidate) -> Iterator[Term]:
    yield from parts(equation.left)
    yield from parts(equation.right)


def searched(
    stated: Sequence[Candidate], families: Sequence[str], size: int, seconds: float
) -> Iterator[tuple[Search, list[Found]]]:
    """Each search, where `families` are left out of the book, with the rules that it finds."""
    kept = tuple(name for name in rules.FAMILIES if name not in families)
    for how in searches(stated, size):
        how = replace(how, families=kept, seconds=seconds, fast_math=True)
        result = discover(how)
        words = f"{' '.join(how.operators)} to size {how.size}: {len(result.found)} rules"
        words += f", {_cpu():.0f} CPU seconds"
        print(words + f"; stopped by {result.stopped}" * bool(result.stopped), flush=True)
        yield how, result.found


def beside_taso(search: Search) -> None:
    """Print how many equations of the operators of TASO are found, and how many are sound."""
    result = discover(search)
    sound = [f for f in result.found if f.status.is_rule]
    proven = sum(f.status.is_proven for f in result.found)
    for f in result.found:
        print(f"{f.candidate}: {f.status.proof}")
    terms, equations = (sum(layer[k] for layer in result.layers) for k in ("terms", "candidates"))
    refused = sum(not status.is_rule for _, status in result.refused) + result.variants
    print(f"{' '.join(search.operators)} to size {search.size}, with {search.variables} variables")
    print(f"{terms} terms, {equations} equations, {refused} of them refused")
    print(f"{len(sound)} rules found that pass the check, {proven} proven for all extents")
    print("TASO publishes 157 pairs of graphs with up to 4 operators")
    print(f"{_cpu():.0f} CPU seconds" + f"; stopped by {result.stopped}" * bool(result.stopped))


def _again(equation: Candidate, each: Sequence[tuple[Search, list[Found]]]) -> bool:
    """Whether the rules of one search, and what stays of the book, prove an equation."""
    needed = _operators(equation)
    return any(
        derived(how.families, True, "\n".join(f.equation for f in found), [equation]) == [True]
        for how, found in each
        if needed.issubset(how.operators)
    )


def _counts(outcomes: Iterable[str]) -> str:
    """How many of the rules within the size are found again."""
    within = [outcome for outcome in outcomes if outcome in ("found again", "missed")]
    again = within.count("found again")
    return f"{again} of {len(within)} found again ({again / max(len(within), 1):.0%})"


def _cpu() -> float:
    return sum(u.ru_utime + u.ru_stime for u in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))


def main() -> int:
    """Print what each search finds, then which rules of the book are found again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=FAMILIES)
    parser.add_argument("--size", type=int, default=3, help="the most operators of a term")
    parser.add_argument("--seconds", type=float, default=120.0, help="the most of a search")
    parser.add_argument("--taso", action="store_true", help="search the operators of TASO")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.taso:
        beside_taso(replace(TASO, size=options.size, seconds=options.seconds))
        return 0
    read = list(wanted(options.families))
    equations = [rule.equation for rule in read if rule.equation is not None]
    each = list(searched(equations, options.families, options.size, options.seconds))
    found = {str(f.candidate): f for _, some in each for f in some}.values()
    taken = _cpu()
    table: dict[str, dict[str, str]] = {}
    for rule in read:
        if rule.equation is None:
            outcome = f"no equation of terms: {rule.reason}"
        elif _size(rule.equation) > options.size:
            outcome = "beyond the size"
        elif _again(rule.equation, each):
            outcome = "found again"
        else:
            outcome = "missed"
        table.setdefault(rule.family, {})[rule.name] = outcome
        if outcome != "found again":
            print(f"{rule.family} {rule.name}: {outcome}")
    for family, outcomes in table.items():
        print(f"{family}: {_counts(outcomes.values())}, of {len(outcomes)} rules")
    every = [outcome for outcomes in table.values() for outcome in outcomes.values()]
    print(f"all: {_counts(every)}, of {len(every)} rules")
    proven = sum(f.status.is_proven for f in found)
    print(f"{len(found)} rules found, {proven} proven for all extents; {taken:.0f} CPU seconds")
    if options.json:
        texts = [f.as_dict() for f in found]
        report = {"rules": table, "found": texts, "cpu seconds": taken}
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
