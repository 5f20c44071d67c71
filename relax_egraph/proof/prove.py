"""The proof that an extracted program is equal to its source region.

Saturation is repeated and recorded.  Every match of a rule becomes an equation between two terms,
the sides of the rule, over a representative term for each class.  These equations and congruence
join the same classes as egglog did; so the program is equal to its source, and the equations on
the path between them are the proof.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relax_egraph.egraph.node import LEAF, Node, scalar_node
from relax_egraph.egraph.readback.tables import Key
from relax_egraph.egraph.recording.recording import Moment, record
from relax_egraph.egraph.recording.snapshot import CONSTANT, Instance, Made, Match
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.saturation.in_process import Saturating
from relax_egraph.egraph.view import ClassId, ENode, Program, View
from relax_egraph.errors import ProofError
from relax_egraph.ir.depth import deep
from relax_egraph.optimize.explanation import RegionReport
from relax_egraph.proof.chain import chain
from relax_egraph.proof.deduced import CONST_SCALAR, IS_CONST, Row, Rows, terms_in
from relax_egraph.proof.forest import Forest
from relax_egraph.proof.kernels import kernel_terms, lower, without_kernels
from relax_egraph.proof.paths import Deduced, Pairs
from relax_egraph.proof.term import Term, Terms, canonical, post_order
from relax_egraph.proof.trace import Firing, Proof, Step, Trace


@deep(ProofError, "the program is nested too deeply to be proven")
def prove(region: RegionReport, outputs: Sequence[str], tolerance: float = 0.0) -> Proof:
    """A trace for each root of `region`, from its term in the block to the chosen program.

    `outputs` name the roots.  Raises `ProofError` if a root is not proven, and `SaturationError` if
    a run cannot be repeated.
    """
    runs, view, function = region.runs, region.view, region.function
    terms, forest, firings = Terms(), Forest(), list[Firing]()
    rows = Rows(terms, forest)
    source, assumed = runs[0].view, runs[0].assumed
    with runs[0].again():
        loaded = [_terms_of(terms, run.view) for run in runs]
        for of, run in zip(loaded, runs, strict=True):
            for left, right in _numbers(terms, run.view, of):
                forest.unite(left, right, CONSTANT)
            rows.numbers.update(t for c, t in of.items() if run.view.classes[c].scalar is not None)
            rows.constants.update(t for c, t in of.items() if _is_constant(run.view, c, t))
            classes = _Classes(terms, forest, rows, of)
            for moment in record(run):
                firings += classes.learn(moment)
        computed = _program_terms(terms, view, region.extraction.program)
    of_leaves = {
        node.key: eclass
        for eclass in source.classes.values()
        for node in eclass.nodes
        if node.op == LEAF
    }
    leaves = {key: eclass.struct_info for key, eclass in of_leaves.items()}
    finite = frozenset(key for key, eclass in of_leaves.items() if eclass.magnitude is not None)
    rules = {name: rule for run in runs for name, rule in _matched(run).items()}
    traces: list[Trace] = []
    for output, root, now in zip(outputs, source.roots, view.roots, strict=True):
        before, after = loaded[0][root], computed[now]
        try:
            steps = _steps(forest, terms, before, after)
        except ProofError as problem:
            where = f"{function}, output {output}"
            raise ProofError(f"{where}: the chosen program is not proven: {problem}") from None
        traces.append(
            Trace(
                function=function,
                output=output,
                source=before,
                result=after,
                steps=steps,
                leaves={key: source.leaves[key] for key in leaves},
                infos=leaves,
                opaque=dict(enumerate(source.opaque)),
                rules=rules,
                book=runs[0].book(),
                assumed=assumed,
                tolerance=tolerance,
                finite=finite,
            )
        )
    return Proof(tuple(traces), tuple(firings))


def _matched(run: Saturating) -> dict[str, Rule]:
    """The rules that matched, by their names in reports."""
    matched = {name for phase in run.report.phases for name in phase.matches}
    rules = ((name, rule) for rule in run.book().rules for name in rule.reported)
    return {name: rule for name, rule in rules if name in matched or name == CONSTANT}


def _steps(forest: Forest, terms: Terms, source: Term, target: Term) -> tuple[Step, ...]:
    """The steps from `source` to `target`: rewrites of tensors, then lowering to kernels.

    If rules of the user rewrite within kernels, both are mixed.
    """
    plain = without_kernels(terms, target)
    forest.add(source)
    missing = [term for term in post_order(plain) if forest.add(term)]
    if forest.equal(source, plain):
        kernels = Forest()
        lower(kernels, terms, target)
        return (*chain(forest, terms, source, plain), *chain(kernels, terms, plain, target))
    lower(forest, terms, target)
    try:
        return chain(forest, terms, source, target)
    except ProofError:
        what = f"makes its {missing[0].op}" if missing else "leads to it"
        raise ProofError(f"no rule that was recorded {what}") from None


@dataclass(frozen=True, slots=True)
class _Learnt:
    """A match over terms: its premises, its equations, its nodes, and the rows that it adds."""

    rule: str
    given: Pairs
    deduced: tuple[Deduced, ...]
    edges: list[tuple[Term, Term]]
    created: list[Term]
    writes: list[tuple[str, Row]]


class _Classes:
    """The representative term of each class of a run; matches become equations in `forest`.

    The representative of a class is its oldest term, with two exceptions.  If a match reads a row
    of a relation, its tensors are the terms for which the row was deduced, as the row states more
    about them than about equal terms.  If a match reads that a value is a number, or constant, the
    value is a term that shows it by its form; other terms of the class need steps of their own.
    """

    def __init__(
        self, terms: Terms, forest: Forest, rows: Rows, loaded: Mapping[ClassId, Term]
    ) -> None:
        self._terms, self._forest, self._rows, self._loaded = terms, forest, rows, loaded
        self._term: dict[Key, Term] = {}
        self._override: dict[Key, Term] = {}

    def learn(self, moment: Moment) -> Iterator[Firing]:
        """Add the classes and matches of `moment`; returns the firings of its rules."""
        for key, origin in moment.classes:
            term = self._instance(origin) if isinstance(origin, Node) else self._loaded[origin]
            self._forest.add(term)
            self._term[key] = term
        matches, nodes = Counter[str](), Counter[str]()
        constants = [match for match in moment.matches if match.rule == CONSTANT]
        others = [match for match in moment.matches if match.rule != CONSTANT]
        for group in filter(None, (constants, others)):  # constants precede all other matches
            self._rows.refresh()
            learnt = list(map(self._match, group))
            for left, _ in (edge for one in learnt for edge in one.edges):
                self._forest.add(left)
            for one in learnt:
                matches[one.rule] += 1
                nodes[one.rule] += sum(map(self._forest.add, one.created))
            for one in learnt:
                self._adopt(one)
        for rule, count in matches.items():
            yield Firing(moment.phase, moment.iteration, rule, count, nodes[rule])

    def _adopt(self, one: _Learnt) -> None:
        """Add the equations and rows of a match."""
        for left, right in one.edges:
            self._forest.unite(left, right, one.rule, one.given, one.deduced)
        for name, row in one.writes:
            for term in terms_in(row):
                self._forest.add(term)
            time = self._forest.clock
            self._rows.add(Deduced(one.rule, name, row, time, one.given, one.deduced))

    def _match(self, match: Match) -> _Learnt:
        """`match` over terms; tensors in rows that it reads are the terms of their deduction."""
        self._override = {}
        deduced: dict[Deduced, None] = {}
        equations: list[tuple[Term, Term]] = []
        for name, row in match.reads:
            now = self._row(row)
            for term in terms_in(now):
                self._forest.add(term)
            read, because = self._read(name, now)
            deduced.update(dict.fromkeys(because))
            for key, term in zip(_keys(row), terms_in(read), strict=True):
                if isinstance(key, Key) and self._override.setdefault(key, term) is not term:
                    equations.append((self._override[key], term))
        equations += self._pairs(match.given)
        return _Learnt(
            match.rule,
            tuple(equations),
            tuple(deduced),
            list(self._pairs(match.edges)),
            [self._instance(of) for of in match.made if of],
            [(name, self._row(row)) for name, row in match.writes],
        )

    def _read(self, name: str, row: Row) -> tuple[Row, tuple[Deduced, ...]]:
        """The `row` over the terms for which it was deduced, and its deductions."""
        if name in (CONST_SCALAR, IS_CONST) and row[0] is not None:
            witness = self._rows.witness(name, row[0])
            return ((witness.term, *row[1:]), witness.deduced) if witness else (row, ())
        deduction = self._rows.find(name, row)
        return (deduction.row, (deduction,)) if deduction else (row, ())

    def _row(self, row: tuple[Any, ...]) -> Row:
        def item(of: Any) -> Any:
            match of:
                case Key() | Node():
                    return self._instance(of)
                case tuple():
                    return tuple(map(item, of))
                case _:
                    return of

        return tuple(map(item, row))

    def _pairs(self, pairs: Iterable[tuple[Instance, Instance]]) -> Iterator[tuple[Term, Term]]:
        return ((self._instance(a), self._instance(b)) for a, b in pairs if a and b)

    def _instance(self, of: Key | Made) -> Term:
        if isinstance(of, Key):
            return self._override.get(of) or self._forest.oldest(self._term[of])
        return self._terms.term(of.over(self._instance))


def _keys(row: tuple[Any, ...]) -> Iterator[Key | Made]:
    """The keys and nodes in a row, each of which becomes a term."""
    for item in row:
        if isinstance(item, Key | Node):
            yield item
        elif isinstance(item, tuple):
            yield from _keys(item)


def _is_constant(view: View, c: ClassId, term: Term) -> bool:
    return term.op == LEAF and view.classes[c].is_const


def _terms_of(terms: Terms, view: View) -> dict[ClassId, Term]:
    """A term for each class of `view`, from its first acyclic node."""
    of_class: dict[ClassId, Term] = {}
    waiting = [(c, node) for c, eclass in view.classes.items() for node in eclass.nodes]
    while waiting:
        later: list[tuple[ClassId, ENode]] = []
        for c, node in waiting:
            if c in of_class:
                continue
            if all(k in of_class for k in node.operands):
                of_class[c] = terms.term(canonical(node.over(of_class.__getitem__)))
            else:
                later.append((c, node))
        if len(later) == len(waiting):
            break
        waiting = later
    return of_class


def _numbers(
    terms: Terms, view: View, loaded: Mapping[ClassId, Term]
) -> Iterator[tuple[Term, Term]]:
    """The leaves of `view` that are scalar constants, each with a scalar term."""
    for c, term in loaded.items():
        info, value = view.classes[c].struct_info, view.classes[c].scalar
        if term.op == LEAF and value is not None and info.dims == ():
            yield term, terms.term(scalar_node(value, info.dtype or ""))


def _program_terms(terms: Terms, view: View, program: Program) -> dict[ClassId, Term]:
    """The term that `program` computes for each class that it needs."""
    computed: dict[ClassId, Term] = {}
    for choice in program:
        if isinstance(choice.how, Node):
            (c,) = choice.outputs
            computed[c] = terms.term(canonical(choice.how.over(computed.__getitem__)))
        else:
            stored = kernel_terms(terms, choice.how, [computed[c] for c in choice.inputs])
            computed.update(zip(choice.outputs, stored, strict=True))
    return computed
