"""The values of e-classes on random inputs: every node is compared with the value of its class.

The value of a class is that of the program's step in it.  For a class that only rules added, it is
the value of its first node that can be computed.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from relax_egraph.egraph.encoding.constructors import constructor_of
from relax_egraph.egraph.node import LEAF, OPAQUE, Node
from relax_egraph.egraph.readback.tables import Key
from relax_egraph.egraph.recording.trial import Trial
from relax_egraph.ir.dtypes import name_of
from relax_egraph.verify.values.applied import Result, constant
from relax_egraph.verify.values.evaluation import NOT_COMPUTED, Evaluation
from relax_egraph.verify.values.inputs import Array, Kind
from relax_egraph.verify.values.tolerance import Computed, Need, gap


@dataclass(frozen=True, slots=True)
class Difference:
    """Two values of one class, or a node without a value for the reason `problem`.

    `steps` are the numbers of the program's values in the class, or in classes that use it; `pair`
    is the index of the two values among all compared pairs.
    """

    need: Need
    steps: tuple[int, ...]
    left: Array | None
    right: Array | None
    at: tuple[int, ...] | None
    problem: str = ""
    kind: Kind = "ordinary"
    ulps: float = 0.0
    on: frozenset[str] = frozenset()
    pair: int = 0


class Classes:
    """The classes of a trial, each with the value that all of its nodes must have.

    `compared` are the numbers of the steps whose class has a second value; `pairs` are the compared
    values, in the same order in every run of one trial.
    """

    def __init__(self, run: Evaluation, trial: Trial) -> None:
        self.run, self.trial = run, trial
        self.compared: set[int] = set()
        self.pairs: list[tuple[Computed, Computed]] = []
        self.steps: dict[Key, list[int]] = defaultdict(list)
        by_number = {s.number: s for s in run.program.steps}
        for number, key in sorted(trial.values.items()):
            if number in by_number:
                self.steps[key].append(number)
        for numbers in self.steps.values():
            numbers.sort(key=lambda n: n not in trial.matched)
        self.values: dict[Key, Result] = {}
        self.own: dict[Key, set[Node[Key | None]]] = defaultdict(set)
        for key, numbers in self.steps.items():
            known = [run.values[n] for n in numbers if n in run.values]
            if known:
                self.values[key] = known[0]
            for n in numbers:
                if (node := by_number[n].node) is not None:
                    self.own[key].add(node.over(trial.values.get))

    def differences(self) -> Iterator[Difference]:
        """The differences between values of one class."""
        for numbers in self.steps.values():
            known = [n for n in numbers if n in self.run.values]
            for n in known[1:]:
                if self.run.values[n] is not self.run.values[known[0]]:
                    yield from self.compare(numbers, self.run.values[known[0]], self.run.values[n])
        for key, number in self.trial.scalars.items():
            value = self.values.get(key)
            if isinstance(value, Computed) and not self.is_claimed(key):
                same = constant(number, value.value.shape, name_of(value.value.dtype))
                yield from self.compare(self.steps[key], value, same)
        waiting = [(k, n) for k, n in self.trial.nodes if n.op not in (LEAF, OPAQUE)]
        broken: dict[Key, str] = {}
        progress = True
        while waiting and progress:
            progress, rest = False, []
            for key, node in waiting:
                own = node in self.own[key]
                if own and key in self.values:
                    progress = True  # it has been computed as a step of the program
                    continue
                try:
                    result = self.run.computed(node, self.values.get)
                except NOT_COMPUTED as problem:
                    progress = True
                    if not own:
                        head = constructor_of(node.op).head
                        broken.setdefault(key, f"{head} cannot be computed: {problem}")
                    continue
                if result is None:
                    rest.append((key, node))
                    continue
                progress = True
                if key not in self.values:
                    self.values[key] = result
                else:
                    near = self.steps.get(key) or self.near(key)
                    yield from self.compare(near, self.values[key], result)
            waiting = rest
        yield from self.failures(waiting, broken)

    def is_claimed(self, key: Key) -> bool:
        """Whether the program claims that all elements of this class are one number."""
        by_number = self.run.program.steps
        return any(by_number[n].scalar is not None for n in self.steps[key])

    def failures(
        self, waiting: list[tuple[Key, Node[Key]]], broken: dict[Key, str]
    ) -> Iterator[Difference]:
        """The values that a node lacks: the node or one of its operands cannot be computed."""
        reached = {k: why for k, why in broken.items() if k not in self.values}
        there = {*self.values, *self.steps, *(k for k, _ in self.trial.nodes)}
        for _, node in waiting:
            nothing = (c for c in node.operands if c not in there)
            why = f"{constructor_of(node.op).head} needs an operand that is (R.none)"
            reached |= dict.fromkeys(nothing, why)
        grown = True
        while grown:
            grown = False
            for key, node in waiting:
                why = next((reached[c] for c in node.operands if c in reached), None)
                if why is not None and key not in reached:
                    if key in self.values:
                        broken.setdefault(key, why)
                    else:
                        reached[key] = why
                        grown = True
        for key, why in broken.items():
            if key in self.values and self.steps.get(key):
                value = self.values[key]
                left = value.value if isinstance(value, Computed) else None
                if left is None or left.size:
                    yield Difference(
                        "unsound", tuple(self.steps[key]), left, None, None, why, self.run.kind
                    )

    def near(self, key: Key) -> list[int]:
        """The steps in the class, or else in the nearest classes that use it."""
        reached, seen = [key], {key}
        for k in reached:
            if self.steps.get(k):
                return self.steps[k]
            above = [p for p in self.over.get(k, ()) if p not in seen]
            seen.update(above)
            reached += above
        return []

    @cached_property
    def over(self) -> Mapping[Key, list[Key]]:
        """By class, the classes of the nodes that use it."""
        users: dict[Key, list[Key]] = defaultdict(list)
        for key, node in self.trial.nodes:
            for child in node.operands:
                users[child].append(key)
        return users

    def compare(self, numbers: list[int], left: Result, right: Result) -> Iterator[Difference]:
        """The difference between two values of the class of the steps with these `numbers`."""
        if isinstance(left, tuple) or isinstance(right, tuple):
            if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
                for a, b in zip(left, right, strict=True):
                    yield from self.compare(numbers, a, b)
            return
        self.compared.update(numbers)
        pair = len(self.pairs)
        self.pairs.append((left, right))
        difference = gap(left, right, self.run.kind)
        if difference.need != "exact" or difference.on:
            yield Difference(
                difference.need,
                tuple(numbers),
                left.value,
                right.value,
                difference.at,
                kind=self.run.kind,
                ulps=difference.ulps,
                on=difference.on,
                pair=pair,
            )
