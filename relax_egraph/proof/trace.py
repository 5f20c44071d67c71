"""A proof as data: a chain of single rule applications from a program to the optimized one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.errors import ProofError
from relax_egraph.ir.assumptions import Assumptions
from relax_egraph.ir.expr import Binding, Expr
from relax_egraph.ir.struct_info import TensorStructInfo
from relax_egraph.proof.term import Term, Terms


@dataclass(frozen=True, slots=True)
class Deduction:
    """A rule that deduced what others read: a `row` of the relation or function `name`.

    A row has terms, vectors of them, and plain values.  Where the rule asks that two values be
    equal, `given` are the steps from one to the other.
    """

    rule: str
    name: str
    row: tuple[Any, ...]
    given: tuple["Step", ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One rule applied: wherever the program has `before`, it has `after` then.

    `rule` is as `egraph.report.Report` names it, one direction of a birewrite.  If it is applied
    `backwards`, `before` is what it makes.  In most steps it is applied to `before` itself; where
    another part of the program is to stay as it is, to what is `before` but within it.  Where the
    rule asks that two values be equal, `given` are the steps from one to the other: a step has the
    rounding of these, too.  Where it reads what was `deduced`, it rests on these: each of them
    stands after those that it rests on.
    """

    rule: str
    before: Term
    after: Term
    backwards: bool = False
    given: tuple["Step", ...] = ()
    deduced: tuple[Deduction, ...] = ()

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that `after` is equal to `before` by, each once."""
        return tuple(dict.fromkeys(self._rules()))

    def _rules(self) -> Iterator[str]:
        yield self.rule
        for step in self.before_it:
            yield from step.rules
        yield from (one.rule for one in self.deduced)

    @property
    def before_it(self) -> Iterator["Step"]:
        """The steps that its premises hold by: those given to it, and to what it rests on."""
        for one in self.deduced:
            yield from one.given
        yield from self.given


@dataclass(frozen=True, slots=True)
class Trace:
    """The steps from `source` to `result`, one output of a region of `function`.

    `leaves` are what terms of operator ``leaf`` stand for, by key: a `Constant`, or a variable;
    `infos` are what is known of them.  `opaque` are the bindings that terms of operator ``opaque``
    stand for, by key.  `rules` are all that matched, by the names that steps have; a rule that is
    generated of an operator's traits is in no file, and not among them; `book` is that of the run.
    `assumed` is what holds of symbols, and `tolerance` is that of the function.
    """

    function: str
    output: str
    source: Term
    result: Term
    steps: tuple[Step, ...]
    leaves: Mapping[int, Expr]
    infos: Mapping[int, TensorStructInfo]
    opaque: Mapping[int, Binding] = field(default_factory=dict[int, Binding])
    rules: Mapping[str, Rule] = field(default_factory=dict[str, Rule])
    assumed: Assumptions | None = None
    tolerance: float = 0.0
    book: RuleBook | None = None

    def programs(self) -> Iterator[Term]:
        """The source, and the program after each step; the last is the result.

        Raises `ProofError` at a step whose `before` the program does not have, or at the end if
        that is not so.
        """
        terms, program = Terms(), self.source
        for term in (program, self.result, *(t for s in self.steps for t in (s.before, s.after))):
            terms.adopt(term)
        yield program
        for number, step in enumerate(self.steps, 1):
            then = terms.replaced(program, step.before, step.after)
            if then is program:
                raise ProofError(f"{self}: step {number}, {step.rule}, changes nothing")
            yield then
            program = then
        if program is not self.result:
            raise ProofError(f"{self}: {len(self.steps)} steps do not lead to the result")

    @property
    def written(self) -> frozenset[str]:
        """The rules of its steps and of what these read, by the names that files give them."""
        names = (n for step in self.steps for n in step.rules)
        return frozenset(self.rules[n].name for n in names if n in self.rules)

    def __str__(self) -> str:
        return f"{self.function}, output {self.output}"


@dataclass(frozen=True, slots=True)
class Firing:
    """What `rule` did in an iteration: its matches, and the nodes that were not there before.

    A node that several rules make in one iteration counts for the first.
    """

    phase: str
    iteration: int
    rule: str
    matches: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Proof:
    """The traces of all outputs of a region, and what every rule did in its saturation."""

    traces: tuple[Trace, ...]
    firings: tuple[Firing, ...]
