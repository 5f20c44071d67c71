"""The deepest partial matches of a rule in an e-graph, and their description in words."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from relax_egraph.egraph.readback.tables import Key
from relax_egraph.reasons.why_not.answer import Miss, Near
from relax_egraph.reasons.why_not.partial import Partial
from relax_egraph.reasons.why_not.plan import Plan, Values
from relax_egraph.reasons.why_not.search import Search
from relax_egraph.reasons.why_not.wording import Words, place_of

_MATCHES = 1_000
"""The most full matches whose classes are listed."""


def full_matches(search: Search, plan: Plan) -> list[Key | None]:
    """The distinct classes of the full matches of `plan`; ``None`` for a match without a class."""
    matches = islice(search.matches(plan, {}), _MATCHES)
    return list(dict.fromkeys(_about(plan, values) for values in matches))


def deepest(search: Search, plan: Plan, at: Sequence[Key] | None) -> list[Partial]:
    """The deepest partial matches of `plan`, at `at` or anywhere; one for each class."""
    if at is not None:
        partials = [search.best(plan, {name: key}) for name in plan.focus for key in at]
        if not any(p.weight[0] for p in partials):
            inner = dict.fromkeys(_results(plan))
            partials += [search.best(plan, {name: key}) for name in inner for key in at]
        return [max(partials, key=lambda p: p.weight)] if partials else []
    best: dict[Key | None, Partial] = {}
    for p in _anywhere(search, plan):
        about = _about(plan, p.values)
        if (p.is_near or (not plan.nodes and p.matched)) and (
            about not in best or p.weight > best[about].weight
        ):
            best[about] = p
    most = max((p.nodes for p in best.values()), default=0)
    deep = (p for p in best.values() if 2 * p.nodes > most or not most)
    return sorted(deep, key=lambda p: p.weight, reverse=True)


def _anywhere(search: Search, plan: Plan) -> Iterator[Partial]:
    """The deepest match from each class with the first operator of `plan`.

    A match from a class with another operator of `plan` follows only if it is deeper.
    """
    covered: set[tuple[str, Key]] = set()
    nodes = [c for c in plan.conjuncts if c.kind == "node" and isinstance(c.result, str)]
    most = 0
    for c in nodes:
        reached = most
        for key in dict.fromkeys(row[-1] for row in search.database.table(c.head)):
            if (str(c.result), key) in covered:
                continue
            if search.is_over:
                return
            partial = search.best(plan, {str(c.result): key})
            covered |= {(v, k) for v, k in partial.values.items() if isinstance(k, Key)}
            if c is nodes[0] or partial.nodes > reached:
                most = max(most, partial.nodes)
                yield partial
    if not nodes and plan.focus:
        for key in dict.fromkeys(row[0] for row in search.database.table("dtype-of")):
            if search.is_over:
                return
            yield search.best(plan, {plan.focus[0]: key})


def _about(plan: Plan, values: Values) -> Key | None:
    """The class of a match: its root, or else the class of its first operator that matches."""
    about = (values.get(name) for name in (*plan.focus, *_results(plan)))
    return next((v for v in about if isinstance(v, Key)), None)


def _results(plan: Plan) -> Iterator[str]:
    return (c.result for c in plan.conjuncts if c.kind == "node" and isinstance(c.result, str))


def described(words: Words, partial: Partial, function: str) -> Near:
    """`partial`, a match at a value of `function`, in words."""
    plan, rule = partial.plan, partial.plan.pattern.rule
    order = {id(c): k for k, c in enumerate(plan.conjuncts)}
    misses: list[Miss] = []
    for failure in sorted(partial.failures, key=lambda f: order[id(f.conjunct)]):
        c, would = failure.conjunct, failure.would
        miss = Miss(plan.premises[c.premise], c.start, c.end, words.failure(partial, failure))
        if would is not None:
            miss = replace(miss, would=described(words, would, function))
        misses.append(miss)
    key = _about(plan, partial.values)
    return Near(
        rule.name,
        place_of(rule),
        function,
        "some value" if key is None else words.names.of(key),
        partial.nodes,
        partial.of_nodes,
        tuple(misses),
        dict(_values(words, partial)),
        words.excluded(rule),
    )


def _values(words: Words, partial: Partial) -> Iterator[tuple[str, str]]:
    """The variables of the rule that match tensors, and these in words."""
    for name, arg in partial.plan.names.items():
        value = partial.values.get(arg) if isinstance(arg, str) else None
        if isinstance(value, Key) and name not in partial.plan.focus:
            text, info = words.names.of(value), words.names.info(value)
            yield name, f"{text}: {info}" if info and info not in text else text
