"""Trials of a rule on instances of its pattern: several instances in one e-graph."""

from collections.abc import Iterator, Sequence
from random import Random

from relax_egraph.egraph.recording.trial import Trial, try_rule
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Direction
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.instances.makers import makers_of, needed
from relax_egraph.verify.instances.texts import tried_rule
from relax_egraph.verify.values.classes import Difference
from relax_egraph.verify.values.compare import Wrong, compare
from relax_egraph.verify.values.inputs import KINDS, Kind
from relax_egraph.verify.values.program import Program

_TOGETHER, _FEW, _MANY = 30, 6, 10
"""Instances in one e-graph; few for a rule with many premises, whose join grows fast."""


def tried(
    book: RuleBook,
    head: Direction,
    random: Random,
    instances: Sequence[Instance],
    kinds: Sequence[Kind] = KINDS,
) -> tuple[list[Instance], list[Wrong]]:
    """Run the rule `head` of `book` on `instances`; return the matched ones, and the wrong ones.

    The values of leaves are of these `kinds`, one after the other, drawn by `random`.
    """
    fired: list[Instance] = []
    wrong: list[Wrong] = []
    premises = len(head.premises)
    for batch in _batched(instances, _TOGETHER if premises < _MANY else _FEW):
        fired_here, wrong_here = _together(book, head, random, batch, kinds)
        fired += fired_here
        wrong += wrong_here
    return fired, wrong


def _together(
    book: RuleBook,
    head: Direction,
    random: Random,
    instances: Sequence[Instance],
    kinds: Sequence[Kind],
) -> tuple[list[Instance], list[Wrong]]:
    """Run a rule on `instances` in one e-graph, as in `tried`."""
    program = Program(book.declarations)
    for instance in instances:
        program.add(instance)
    rule = head.rule
    helpers = [r for r in needed(rule, makers_of(book)) if r.name != rule.name]
    alone = tried_rule(head, book.declarations)
    trial = try_rule(book, program.actions, alone, helpers)
    return _compared(program, trial, random, kinds)


def _compared(
    program: Program, trial: Trial, random: Random, kinds: Sequence[Kind]
) -> tuple[list[Instance], list[Wrong]]:
    """The instances that matched in `trial`, and the wrong ones."""
    compared, wrong = compare(program, trial, random, kinds)
    of_step = {s.number: s.instance for s in program.steps}
    matched = {of_step[n] for n in trial.matched if n in of_step}
    if trial.conflict:
        at = min(matched, default=0)
        conflict = Difference("unsound", (), None, None, None, f"it {trial.conflict}")
        wrong.append(Wrong(program.instances[at], conflict, program.instances[at]))
        compared.add(at)
    failed = {w.instance for w in wrong}
    compared |= {k for k, i in enumerate(program.instances) if i in failed}
    fired = [program.instances[k] for k in sorted(matched & compared)]
    return fired, wrong


def _batched(items: Sequence[Instance], count: int) -> Iterator[Sequence[Instance]]:
    """`items` in batches of `count`."""
    for k in range(0, len(items), count):
        yield items[k : k + count]
