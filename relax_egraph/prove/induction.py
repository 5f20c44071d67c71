"""Stated meanings of relations, shown for every rule that adds a row.

Rows are deduced in finitely many steps.  If each step that reads rows of which the meanings hold
adds one of which the meaning holds, then it holds of every row: a proof may assume it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Atom, Form, Tree, forms_in, written
from relax_egraph.egraph.rulebook.meaning import Meaning
from relax_egraph.egraph.rulebook.rule import Direction, Row
from relax_egraph.prove.attributes import Open
from relax_egraph.prove.bindings import Unbound
from relax_egraph.prove.choices import Choices
from relax_egraph.prove.comparison import Comparing, NotProven
from relax_egraph.prove.dtypes import dtypes_of
from relax_egraph.prove.effort import Pass, TooSlow, passes
from relax_egraph.prove.instances import (
    NONE,
    UNFORESEEN,
    every_run,
    general,
    inlined,
    rank_of_images,
)
from relax_egraph.prove.questions import Record, recorded, recording
from relax_egraph.prove.reading import NotExpressible
from relax_egraph.prove.rows import others, tables_of
from relax_egraph.prove.showing import Showing
from relax_egraph.prove.typing import IllFormed
from relax_egraph.prove.unfolding import Recursive, Unfolded, renamed, unfolded
from relax_egraph.prove.vacuous import Found, missing
from relax_egraph.verify.instances.makers import makers_of

STEPS = ((2, 60000), (3, 4000), (4, 12000))
"""The passes for a rule that adds a row: its step is shown once, for many proofs."""


@dataclass(frozen=True)
class Shown:
    """Whether the meaning of a relation is shown, of operands of up to so many axes (`ranks`).

    If not, `missing` names the rule whose step is not shown.  The steps assume the meanings `uses`.
    """

    name: str
    missing: str = ""
    uses: tuple[str, ...] = ()
    ranks: int = STEPS[-1][0]
    record: Record = field(default_factory=Record)


def shown(names: Iterable[str], book: RuleBook, exact: bool) -> list[Shown]:
    """All meanings on which the meanings of `names` rest, with what is shown of each."""
    results: dict[str, Shown] = {}
    todo = [*names]
    while todo:
        name = todo.pop(0)
        if name not in results:
            results[name] = _shown(name, book, exact)
            todo += results[name].uses
    return [*results.values()]


@cache
def _shown(name: str, book: RuleBook, exact: bool) -> Shown:
    """The steps of one meaning, for every rule that adds a row."""
    meaning = book.meanings[name]
    if obstacle := _obstacle(name, meaning, book):
        return Shown(name, obstacle)
    uses: dict[str, None] = {}
    ranks = STEPS[-1][0]
    whole = Record()
    for maker, row in makers_of(book).of[name]:
        try:
            with recording() as record:
                used, most = _step(maker, row, meaning, book, exact)
        except TooSlow:
            return Shown(name, f"{maker.name}: it has too many general instances", (*uses,))
        except (NotProven, IllFormed, NotExpressible, Open, Recursive, Unbound) as reason:
            return Shown(name, f"{maker.name}: {reason}", (*uses,))
        except UNFORESEEN as problem:
            reason = f"the proof ends in {type(problem).__name__}: {problem}"
            return Shown(name, f"{maker.name}: {reason}", (*uses,))
        whole.add(record)
        uses |= dict.fromkeys(used)
        ranks = min(ranks, most)
    return Shown(name, "", (*uses,), ranks, whole)


def _step(
    maker: Direction, row: Row, meaning: Meaning, book: RuleBook, exact: bool
) -> tuple[list[str], int]:
    """Show the meaning of a row that a rule adds, of operands of as many axes as there is time for.

    Return the meanings that this assumes, and the number of axes.
    """
    lets = maker.lets
    args = [inlined(a, lets) for a in row.args]
    columns = meaning.named(args, None if row.value is None else inlined(row.value, lets))
    if columns is None:
        raise NotProven("it adds a row that is not written as the meaning is")
    goals = [
        [renamed(f, f"shown {k} ", columns) for f in facts] for k, facts in enumerate(meaning.ways)
    ]
    ways = unfolded(maker, book)
    least = rank_of_images(maker)
    shown_to, ended = -1, -1
    whole = Found()
    record, known = recorded() or Record(), Record()
    for one in passes(STEPS, least):
        try:
            found = {(maker.name, w): _forms(w, goals, columns, exact, one) for w in ways}
        except TooSlow:
            record.become(known)
            break
        whole = {way: whole.get(way, 0) + count for way, count in found.items()}
        ended, one.is_empty = one.ranks, not any(found.values())
        if any(whole.values()):
            shown_to = one.ranks
        known.become(record)
    reason = missing(whole) if shown_to >= 0 else NONE
    if reason and ended < STEPS[-1][0]:
        raise TooSlow
    if reason:
        raise NotProven(reason)
    return [name for way in ways for name in way.meanings], shown_to


def _forms(
    way: Unfolded,
    goals: Sequence[Sequence[Tree]],
    columns: Mapping[str, Tree],
    exact: bool,
    one: Pass,
) -> int:
    """Show one of the `goals` in every general instance; the number of instances."""
    terms = [*columns.values(), *(fact for facts in goals for fact in facts)]
    dtypes = dtypes_of([*way.facts, *terms])

    def run(choices: Choices) -> bool:
        one.effort.spend(1)
        matching = general(way.facts, terms, choices, dtypes, one, lambda m: m)
        comparing = Comparing(matching, one.effort, exact)
        _any(Showing(matching, comparing), goals, columns)
        comparing.record()
        return True

    return sum(filter(None, every_run(run, way.facts, terms, one)))


def _any(showing: Showing, goals: Sequence[Sequence[Tree]], columns: Mapping[str, Tree]) -> None:
    """Raise `NotProven` unless the facts of one goal are shown."""
    reasons: list[str] = []
    for facts in goals:
        try:
            showing.every(facts, columns)
        except (NotProven, IllFormed) as reason:
            reasons.append(str(reason))
        else:
            return
    raise NotProven("; nor: ".join(reasons))


def _obstacle(name: str, meaning: Meaning, book: RuleBook) -> str:
    """Why rows may be other than those that rules add; empty if they are not."""
    if name not in tables_of(book):
        return f"a term: {name} is no relation, and no function"
    if reason := others(name, book):
        return reason
    for head in meaning.constructors:
        sort = book.declarations[head].result
        for direction in (d for rule in book.rules for d in rule.directions):
            if any(_is_of(pair, sort, direction, book) for pair in direction.unions):
                return f"{direction.name}: it equates two of the sort {sort}"
    return ""


def _is_of(pair: tuple[Tree, Tree], sort: str, direction: Direction, book: RuleBook) -> bool:
    """Whether terms that a rule equates may be of a sort: one of them shows it, if it is not."""
    sorts = [_sort(tree, direction, book) for tree in pair]
    return sort in sorts or sorts == ["", ""]


def _sort(tree: Tree, direction: Direction, book: RuleBook) -> str:
    """The sort of a term in a rule; empty if nothing shows it."""
    if isinstance(tree, Form):
        declared = book.declarations.get(tree.head)
        return declared.result if declared is not None else ""
    for form in (f for fact in direction.body for f in forms_in(fact)):
        if form.head == "=" and written(tree) in map(written, form.items[1:]):
            others = (i for i in form.items[1:] if isinstance(i, Form))
            if found := next(filter(None, (_sort(o, direction, book) for o in others)), ""):
                return found
        declared = book.declarations.get(form.head)
        params = declared.sorts if declared is not None else ()
        for item, sort in zip(form.items[1:], params, strict=False):
            if isinstance(item, Atom) and item.text == written(tree):
                return sort
    return ""
