"""Which rules made a part of the optimized program: the steps, followed backwards from it.

A node of the result was made by a rule, or is a node of the source, or one of either with other
operands.  What a rule made leads to what it took, the nodes that its left side matched, and these
to the rules that made them.  A rule that makes nothing, as ``x + 0 = x`` does, took part in what
reads its result from then on.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from relax_egraph.egraph.node import LEAF, LOAD, SCALAR, STORE, Node
from relax_egraph.egraph.view import Choice, ClassId, Program
from relax_egraph.proof.history import Change, History, Number
from relax_egraph.proof.term import Operand, Term
from relax_egraph.proof.trace import Trace


def rules_of(trace: Trace, term: Term, inputs: Collection[Term] = ()) -> tuple[str, ...]:
    """The rules, in order of their first use, that took part in making `term` of the result.

    What is within `inputs`, terms in `term`, is no part of it.
    """
    return _rules(History(trace), term, inputs)


def chains(
    traces: Iterable[Trace], roots: Iterable[ClassId], program: Program
) -> Mapping[int, tuple[str, ...]]:
    """For each choice of `program` that makes something, by its position, the rules that made it.

    `traces` are those of the `roots` of the region that the program is of.  What several outputs
    need is as the first of their traces made it; what none needs is missing.
    """
    maker = {output: place for place, choice in enumerate(program) for output in choice.outputs}
    found: dict[int, dict[str, None]] = {}
    for trace, root in zip(traces, roots, strict=True):
        history = History(trace)
        known = set(found)
        for class_id, (term, inputs) in _made(trace.result, root, program, maker).items():
            place = maker[class_id]
            if place not in known:
                rules = _rules(history, term, inputs)
                found.setdefault(place, {}).update(dict.fromkeys(rules))
    return {place: tuple(found[place]) for place in sorted(found)}


def _made(
    result: Term, root: ClassId, program: Program, maker: Mapping[ClassId, int]
) -> dict[ClassId, tuple[Term, tuple[Term, ...]]]:
    """The term of each class that `program` makes for `root`, and those of what that reads."""
    found: dict[ClassId, tuple[Term, tuple[Term, ...]]] = {}
    todo = [(root, result)]
    while todo:
        class_id, term = todo.pop()
        choice = program[maker[class_id]]
        if class_id in found or (isinstance(choice.how, Node) and choice.how.op in (LEAF, SCALAR)):
            continue
        reads = dict(_reads(class_id, choice, term))
        found[class_id] = (term, tuple(reads.values()))
        todo += reads.items()
    return found


def _reads(class_id: ClassId, choice: Choice, term: Term) -> Iterator[tuple[ClassId, Term]]:
    """The classes that `choice` reads to make `class_id`, each with its part of `term`."""
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
    """What a kernel loads."""
    inner: Operand = term.children[0] if term.op == LOAD else term
    assert isinstance(inner, Term)
    return inner


def _rules(history: History, term: Term, inputs: Collection[Term]) -> tuple[str, ...]:
    root = history.number(term)
    ends = {history.number(t) for t in inputs} - {root}
    part = history.below(root, ends)
    found: list[str] = []
    for change in reversed(history.changes):
        if took_part := _took_part(history, change, part, root):
            found.extend(reversed(change.rules))
        part, ends = _before(change, part, ends, took_part)
    return tuple(dict.fromkeys(reversed(found)))


def _took_part(history: History, change: Change, part: set[Number], root: Number) -> bool:
    """Whether `change` made any of a `part` of the program after it, or something for it to read.

    What is all of the program, its `root`, is read by nothing.
    """
    if change.fresh:
        return bool(change.fresh & part)
    readers = (now for was, now in change.moved.items() if change.before in history.operands(was))
    return not part.isdisjoint(readers) or (change.after == root and not change.moved)


def _before(
    change: Change, part: set[Number], ends: set[Number], took_part: bool
) -> tuple[set[Number], set[Number]]:
    """What a part of a program and its ends were before `change`."""
    came: dict[Number, set[Number]] = {}
    for was, now in change.moved.items():
        came.setdefault(now, set()).add(was)

    def earlier(numbers: set[Number]) -> set[Number]:
        kept = numbers - came.keys() - change.fresh
        return kept.union(*(came[n] for n in numbers & came.keys()))

    before, ended = earlier(part), earlier(ends)
    if took_part:
        before |= change.taken
    elif change.fresh & ends or change.after in ends:
        ended.add(change.before)
    return before - ended, ended
