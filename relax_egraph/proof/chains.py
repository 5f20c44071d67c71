"""Provenance: the rules that contribute to a part of the optimized program.

The steps of a trace are followed backwards.  A node of the result comes from a rule or from the
source, perhaps with other operands.  A node from a rule leads to the nodes that the rule matched,
and these to the rules that added them.  A rule that adds no node, such as ``x + 0 = x``,
contributes to the nodes that read its result.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from relax_egraph.egraph.node import LEAF, LOAD, SCALAR, STORE, Node
from relax_egraph.egraph.view import Choice, ClassId, Program
from relax_egraph.proof.history import Change, History, Number
from relax_egraph.proof.term import Operand, Term
from relax_egraph.proof.trace import Trace


def rules_of(trace: Trace, term: Term, inputs: Collection[Term] = ()) -> tuple[str, ...]:
    """The rules that contribute to `term` of the result, in order of their first use.

    `inputs` are terms in `term`; they and their operands do not count.
    """
    return _rules(History(trace), term, inputs)


def chains(
    traces: Iterable[Trace], roots: Iterable[ClassId], program: Program
) -> Mapping[int, tuple[str, ...]]:
    """The rules that contribute to each choice of `program`, by its position.

    `traces` are the traces of the `roots` of the program's region.  A choice that several outputs
    need has the rules of the first trace; leaves, and choices that no output needs, are missing.
    """
    maker = {output: place for place, choice in enumerate(program) for output in choice.outputs}
    rules_at: dict[int, dict[str, None]] = {}
    for trace, root in zip(traces, roots, strict=True):
        history = History(trace)
        known = set(rules_at)
        for class_id, (term, inputs) in _terms_of(trace.result, root, program, maker).items():
            place = maker[class_id]
            if place not in known:
                rules = _rules(history, term, inputs)
                rules_at.setdefault(place, {}).update(dict.fromkeys(rules))
    return {place: tuple(rules_at[place]) for place in sorted(rules_at)}


def _terms_of(
    result: Term, root: ClassId, program: Program, maker: Mapping[ClassId, int]
) -> dict[ClassId, tuple[Term, tuple[Term, ...]]]:
    """The term of each class that `program` computes for `root`, and the terms that it reads."""
    terms: dict[ClassId, tuple[Term, tuple[Term, ...]]] = {}
    todo = [(root, result)]
    while todo:
        class_id, term = todo.pop()
        choice = program[maker[class_id]]
        if class_id in terms or (isinstance(choice.how, Node) and choice.how.op in (LEAF, SCALAR)):
            continue
        reads = dict(_reads(class_id, choice, term))
        terms[class_id] = (term, tuple(reads.values()))
        todo += reads.items()
    return terms


def _reads(class_id: ClassId, choice: Choice, term: Term) -> Iterator[tuple[ClassId, Term]]:
    """The classes that `choice` reads for `class_id`, each with its part of `term`."""
    if isinstance(choice.how, Node):
        yield from zip(choice.how.operands, term.operands, strict=True)
        return
    kernel, number = choice.how, choice.how.outputs[choice.outputs.index(class_id)]
    todo = [(number, term.children[0] if term.op == STORE else term)]
    while todo:
        number, part = todo.pop()
        step = kernel.step(number)
        if not isinstance(part, Term):
            continue
        if step is None:
            yield choice.inputs[number], _stored(part)
        else:
            todo += zip(step.values, part.operands, strict=True)


def _stored(term: Term) -> Term:
    """The tensor that a kernel loads."""
    inner: Operand = term.children[0] if term.op == LOAD else term
    assert isinstance(inner, Term)
    return inner


def _rules(history: History, term: Term, inputs: Collection[Term]) -> tuple[str, ...]:
    root = history.number(term)
    ends = {history.number(t) for t in inputs} - {root}
    part = history.below(root, ends)
    rules: list[str] = []
    for change in reversed(history.changes):
        if contributes := _contributes(history, change, part, root):
            rules.extend(reversed(change.rules))
        part, ends = _before(change, part, ends, contributes)
    return tuple(dict.fromkeys(reversed(rules)))


def _contributes(history: History, change: Change, part: set[Number], root: Number) -> bool:
    """Whether `change` adds a node of `part`, or an operand of one, to the program after it.

    The whole program, `root`, is the operand of no node.
    """
    if change.fresh:
        return bool(change.fresh & part)
    readers = (now for was, now in change.moved.items() if change.before in history.operands(was))
    return not part.isdisjoint(readers) or (change.after == root and not change.moved)


def _before(
    change: Change, part: set[Number], ends: set[Number], contributes: bool
) -> tuple[set[Number], set[Number]]:
    """A part of a program and its ends, as they were before `change`."""
    came: dict[Number, set[Number]] = {}
    for was, now in change.moved.items():
        came.setdefault(now, set()).add(was)

    def earlier(numbers: set[Number]) -> set[Number]:
        kept = numbers - came.keys() - change.fresh
        return kept.union(*(came[n] for n in numbers & came.keys()))

    before, ended = earlier(part), earlier(ends)
    if contributes:
        before |= change.taken
    elif change.fresh & ends or change.after in ends:
        ended.add(change.before)
    return before - ended, ended
