"""Proofs as data: chains of single rule applications from a program to the optimized one."""

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
    """The deduction of a `row` of the relation or function `name` by `rule`.

    A row has terms, vectors of them, and plain values.  `given` are the steps that prove equations
    among the rule's premises.
    """

    rule: str
    name: str
    row: tuple[Any, ...]
    given: tuple["Step", ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One rule application: it replaces `before` by `after` everywhere in the program.

    `rule` is a name in `egraph.saturation.report.Report`: one direction of a birewrite.  If it is
    applied `backwards`, `before` is its right side.  In most steps the rule applies to `before`
    itself; if other occurrences of its left side must stay, `before` is a larger term around it.
    `given` are the steps that prove equations among the rule's premises: a step has their rounding
    errors, too.  `deduced` are the rows that it depends on, in topological order.
    """

    rule: str
    before: Term
    after: Term
    backwards: bool = False
    given: tuple["Step", ...] = ()
    deduced: tuple[Deduction, ...] = ()

    @property
    def rules(self) -> tuple[str, ...]:
        """The distinct rules that `after` = `before` depends on."""
        return tuple(dict.fromkeys(self._rules()))

    def _rules(self) -> Iterator[str]:
        yield self.rule
        for step in self.before_it:
            yield from step.rules
        yield from (one.rule for one in self.deduced)

    @property
    def before_it(self) -> Iterator["Step"]:
        """The steps that prove its premises, and the premises of its deductions."""
        for one in self.deduced:
            yield from one.given
        yield from self.given


@dataclass(frozen=True, slots=True)
class Trace:
    """The steps from `source` to `result`, one output of a region of `function`.

    `leaves` are the constants and variables of terms of operator ``leaf``, by key, and `infos`
    their struct infos; those in `finite` have neither NaN nor infinities, as an earlier region of
    the function has deduced.  `opaque` are the bindings of terms of operator ``opaque``, by key.
    `rules` are the rules that matched, by their names in steps, without generated rules; `book` is
    the rule book of the run.  `assumed` are the assumptions on symbols, `tolerance` the tolerance
    of the function.
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
    finite: frozenset[int] = frozenset()

    def programs(self) -> Iterator[Term]:
        """The source, and the program after each step; the last is the result.

        Raises `ProofError` at a step whose `before` is not in the program, or if the last program
        is not the result.
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
        """The rules of its steps and of their deductions, by their names in rule files."""
        names = (n for step in self.steps for n in step.rules)
        return frozenset(self.rules[n].name for n in names if n in self.rules)

    def __str__(self) -> str:
        return f"{self.function}, output {self.output}"


@dataclass(frozen=True, slots=True)
class Firing:
    """The effect of `rule` in an iteration: the numbers of its matches and of its new nodes.

    A node that several rules add in one iteration counts for the first.
    """

    phase: str
    iteration: int
    rule: str
    matches: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Proof:
    """The traces of all outputs of a region, and the firings of all rules in its saturation."""

    traces: tuple[Trace, ...]
    firings: tuple[Firing, ...]
