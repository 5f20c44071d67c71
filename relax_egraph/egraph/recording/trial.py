"""Trials: runs of a few rules on an e-graph of ground terms, to see their effect.

The terms are written in the vocabulary: ``(union (Value 0) (R.exp (Value 1)))``.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from relax_egraph.egraph.bindings import EGraph
from relax_egraph.egraph.commands import run, run_text
from relax_egraph.egraph.encoding.prepared import Program, prepared
from relax_egraph.egraph.node import Node
from relax_egraph.egraph.readback.tables import Key, Tables
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.calls import demands
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.saturation.conflict import find_conflict
from relax_egraph.egraph.saturation.deduction import DEDUCE, bounded, deduced
from relax_egraph.egraph.saturation.measure import nodes_of
from relax_egraph.errors import SaturationError

_HELPED = 12
"""The most iterations of the helping rules in one round."""


_AFTER = 6
"""Rounds after the wanted matches, in which rules apply to their results."""

_MOST_NODES, _MOST_ROWS = 10_000, 400_000
"""A trial of families ends above this number of nodes, or of rows in all tables."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The e-graph after a trial of rules.

    `nodes` are all nodes, even those over their own class; `values` are the classes of
    ``(Value i)`` and ``(TupleValue i)``; `matched` are the numbers i of matched values.  `matches`
    has the number of matches of each rule, in a trial of families.  `conflict` is the first
    conflict of facts, as a sentence without its subject.
    """

    nodes: tuple[tuple[Key, Node[Key]], ...]
    values: Mapping[int, Key]
    dtypes: Mapping[Key, str]
    matches: Mapping[str, int]
    scalars: Mapping[Key, float]
    matched: frozenset[int]
    conflict: str | None


@lru_cache(64)
def _only(book: RuleBook, families: tuple[str, ...]) -> RuleBook:
    """`book` without rewrites of families other than `families`; it keeps rules for facts."""
    others = (rule.name for rule in book.rewrites if rule.ruleset not in families)
    return replace(book, without=book.without.union(others))


_NAME = re.compile(r'[^\s()"]+')


def _program(book: RuleBook, families: Sequence[str], texts: Iterable[str]) -> Program:
    """The program that declares `families`, and the names in `texts`, in an empty e-graph."""
    names = {name for text in texts for name in _NAME.findall(text)}
    return _only(book, tuple(families)).where(names).program_of_families


def try_rule(
    book: RuleBook, program: Sequence[str], tried: Rule, helpers: Sequence[Rule], rounds: int = 2
) -> Trial:
    """Load `program`, each entry the actions of a rule, and run the rule `tried`.

    Each of the `rounds` first deduces facts, with the rules `helpers`.  Raises `SaturationError`
    for an error of egglog.
    """
    texts = (*(rule.text_in("engine/helping") for rule in helpers), tried.text_in("engine/trying"))
    with prepared(_program(book, (), (*program, *texts))) as egraph:
        run_text(egraph, "(relation engine/matched (Tensor))")
        run_text(egraph, "(ruleset engine/helping) (ruleset engine/trying) (ruleset engine/asking)")
        asking = {d.name: d for rule in (*helpers, tried) for d in demands(rule)}
        named = (replace(d, name=f"{d.name}/tried") for d in asking.values())
        for text in (*texts, *(demand.text_in("engine/asking") for demand in named)):
            run_text(egraph, text)
        matches: Counter[str] = Counter()
        sizes = _load(egraph, program, matches)
        conflict: str | None = None
        help_out = egraph.parse_program(
            f"(run-schedule (run engine/helping) (run engine/asking))\n{DEDUCE}"
        )
        step = egraph.parse_program(f"(run-schedule (run engine/trying))\n{DEDUCE}")
        for _ in range(rounds):
            for _ in range(_HELPED if helpers or asking else 0):
                outputs = run(egraph, help_out)
                sizes, conflict = _deduced(egraph, outputs, sizes, conflict, matches)
                if not outputs[0].report.updated:
                    break
            sizes, conflict = _deduced(egraph, run(egraph, step), sizes, conflict, matches)
        return _read(egraph, conflict, {})


def try_families(
    book: RuleBook,
    families: Sequence[str],
    program: Sequence[str],
    wanted: Mapping[str, int],
    rounds: int = 24,
) -> Trial:
    """Load `program`, each entry the actions of a rule, and run some `families` on it.

    The run ends soon after each rule of `wanted` has its number of matches.  Raises
    `SaturationError` for an error of egglog.
    """
    matches: Counter[str] = Counter()
    after = 0
    with prepared(_program(book, families, program)) as egraph:
        run_text(egraph, "(relation engine/matched (Tensor))")
        sizes = _load(egraph, program, matches)
        conflict: str | None = None
        together = " ".join(f"(run {name})" for name in families)
        step = egraph.parse_program(f"(run-schedule {together})\n{DEDUCE}")
        for _ in range(rounds):
            outputs = run(egraph, step)
            for reported, count in outputs[0].report.num_matches_per_rule.items():
                matches[reported.rstrip("=><")] += count
            sizes, conflict = _deduced(egraph, outputs, sizes, conflict, matches)
            after += all(matches[name] >= enough for name, enough in wanted.items())
            large = nodes_of(sizes) > _MOST_NODES or sum(sizes.values()) > _MOST_ROWS
            if after > _AFTER or large or conflict or not outputs[0].report.updated:
                break
        return _read(egraph, conflict, matches)


def _deduced(
    egraph: EGraph,
    outputs: list[Any],
    sizes: Mapping[str, int],
    conflict: str | None,
    matches: Counter[str],
) -> tuple[Mapping[str, int], str | None]:
    """Deduce all facts and bounds; returns the sizes of tables, and the first conflict.

    The matches of rules for bounds and magnitudes are added to `matches`.
    """
    try:
        sizes = deduced(egraph, outputs, before=sizes)
        matches.update(bounded(egraph).num_matches_per_rule)
        return sizes, conflict or find_conflict(egraph, sizes)
    except SaturationError as problem:
        return sizes, conflict or str(problem).removeprefix("it ")


def _load(egraph: EGraph, program: Sequence[str], matches: Counter[str]) -> Mapping[str, int]:
    """Run the entries of `program` and deduce all facts, as in `_deduced`; returns the sizes.

    Each entry is parsed by itself, as parsing takes memory quadratic in the length of a text.
    """
    for k, actions in enumerate(program):
        run_text(egraph, f'(rule () ({actions}) :ruleset load :name "load-terms-{k}")')
    run_text(egraph, "(run-schedule (run load))")
    sizes = deduced(egraph, run_text(egraph, DEDUCE))
    matches.update(bounded(egraph).num_matches_per_rule)
    return sizes


def _read(egraph: EGraph, conflict: str | None, matches: Mapping[str, int]) -> Trial:
    tables = Tables(egraph)
    matched = {Key("Tensor", row.inputs[0]) for row in tables.rows("engine/matched")}
    return Trial(
        nodes=tuple(tables.all_nodes()),
        values=tables.loaded,
        dtypes={Key("Tensor", t): d for t, d in tables.dtypes.items()},
        scalars={Key("Tensor", t): c for t, c in tables.scalars.items()},
        matches=dict(matches),
        matched=frozenset(n for n, key in tables.loaded.items() if key in matched),
        conflict=conflict,
    )
