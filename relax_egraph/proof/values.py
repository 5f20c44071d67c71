"""Values of terms on an instance, each in its own dtype and in float64."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from relax_egraph.egraph.node import LEAF, OPAQUE
from relax_egraph.errors import RunError
from relax_egraph.proof.agreement import Around, agree, parts_of
from relax_egraph.proof.history import Number
from relax_egraph.proof.instance import Instance
from relax_egraph.proof.term import Term, key_of, post_order
from relax_egraph.verify.values.applied import Result, computed
from relax_egraph.verify.values.tolerance import Computed


@dataclass(slots=True)
class Values:
    """The values of terms, each computed once.

    Terms that are united share one value from then on, and so do terms over them.  `reads` are the
    operands of opaque bindings, by key.
    """

    instance: Instance
    reads: dict[int, tuple[Result, ...]] = field(default_factory=dict[int, tuple[Result, ...]])
    _numbers: dict[Term, Number] = field(default_factory=dict[Term, Number])
    _known: dict[Hashable, Number] = field(default_factory=dict[Hashable, Number])
    _around: dict[Number, Around] = field(default_factory=dict[Number, Around])
    _results: list[Result | RunError] = field(default_factory=list[Result | RunError])

    def number(self, term: Term) -> Number:
        """The number of the value of `term`."""
        for inner in post_order(term, self._numbers):
            key = self._key(inner)
            if key not in self._known:
                self._known[key] = len(self._results)
                self._results.append(self._computed(inner))
            self._numbers[inner] = self._known[key]
        return self._numbers[term]

    def of(self, term: Term) -> Result:
        """The value of `term`; raises `RunError` if it has none."""
        result = self._results[self.number(term)]
        if isinstance(result, RunError):
            raise result
        return result

    def has(self, term: Term) -> bool:
        """Whether `term` has a value."""
        return not isinstance(self._results[self.number(term)], RunError)

    def around(self, term: Term) -> Around:
        """The kind of numbers in the value of `term`; the default if it has no value."""
        number = self.number(term)
        if number not in self._around:
            result = self._results[number]
            self._around[number] = Around() if isinstance(result, RunError) else Around.of(result)
        return self._around[number]

    def unite(self, before: Term, after: Term) -> None:
        """Share the value of both terms if it is the same to the last bit."""
        number, other = self.number(before), self.number(after)
        if number == other or not _same(self._results[number], self._results[other]):
            return
        self._known[self._key(after)] = number
        self._numbers[after] = number

    def _key(self, term: Term) -> Hashable:
        return key_of(term.over(self._numbers.__getitem__))

    def _computed(self, term: Term) -> Result | RunError:
        children = [self._results[self._numbers[t]] for t in term.operands]
        for child in children:
            if isinstance(child, RunError):
                return child
        try:
            return self._applied(term)
        except RunError as problem:
            return problem
        except (OverflowError, TypeError, KeyError) as problem:
            return RunError(f"{term.op}: {problem}")

    def _result(self, term: Term) -> Result | None:
        result = self._results[self._numbers[term]]
        return None if isinstance(result, RunError) else result

    def _applied(self, term: Term) -> Result:
        if term.op == LEAF:
            return self.instance.leaves[term.key]
        if term.op == OPAQUE:
            operands = (r for t in term.operands if (r := self._result(t)) is not None)
            return self._opaque(term, tuple(operands))
        result = computed(term, self._result, self.instance.extents)
        assert result is not None
        return result

    def _opaque(self, term: Term, operands: tuple[Result, ...]) -> Result:
        """The value of an opaque binding, which must always read the same operands.

        It is random, except for a cast, of whose operand there may be facts.
        """
        first = self.reads.setdefault(term.key, operands)
        if len(first) != len(operands) or not all(map(agree, first, operands)):
            raise RunError(f"opaque binding {term.key} reads other values than in the source")
        value = self.instance.opaque[term.key]
        match operands:
            case (Computed() as given, *_) if term.key in self.instance.casts:
                if not _is_like(given, value):
                    raise RunError(f"opaque binding {term.key} is refused")
                return given
            case _:
                return value


def _is_like(a: Computed, b: Result) -> bool:
    """Whether `b` is a tensor with the shape and dtype of `a`, too."""
    if not isinstance(b, Computed):
        return False
    return (a.value.shape, a.value.dtype) == (b.value.shape, b.value.dtype)


def _same(a: Result | RunError, b: Result | RunError) -> bool:
    if isinstance(a, RunError) or isinstance(b, RunError):
        return False
    pairs = zip(parts_of(a), parts_of(b), strict=True)
    return all(
        x.value.tobytes() == y.value.tobytes() and x.wide.tobytes() == y.wide.tobytes()
        for x, y in pairs
    )
