"""The proof that an extracted program is equal to the region that it was made of.

Saturation is repeated and recorded, and every match of a rule becomes an equation between two
terms: the sides of the rule, over one term that stands for each class.  Classes that egglog joined
are then joined by these equations and congruence; so the program is equal to its source, and the
equations by which it is are the proof.
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
from relax_egraph.ir.assumptions import assuming
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
    """A trace for each root of `region`, from the block to what the chosen program makes of it.

    `outputs` name the roots.  Raises `ProofError` if a root is not reached, and `SaturationError`
    if a run cannot be repeated.
    """
    runs, view, function = region.runs, region.view, region.function
    terms, forest, firings = Terms(), Forest(), list[Firing]()
    rows = Rows(terms, forest)
    source, assumed = runs[0].view, runs[0].assumed
    with assuming(assumed):
        loaded = [_terms_of(terms, run.view) for run in runs]
        for of, run in zip(loaded, runs, strict=True):
            for left, right in _numbers(terms, run.view, of):
                forest.unite(left, right, CONSTANT)
            rows.numbers.update(t for c, t in of.items() if run.view.classes[c].scalar is not None)
            rows.constants.update(t for c, t in of.items() if _is_constant(run.view, c, t))
            classes = _Classes(terms, forest, rows, of)
            for moment in record(run):
                firings += classes.learn(moment)
        made = _program_terms(terms, view, region.extraction.program)
    leaves = {
        node.key: eclass.struct_info
        for eclass in source.classes.values()
        for node in eclass.nodes
        if node.op == LEAF
    }
    rules = {name: rule for run in runs for name, rule in _matched(run).items()}
    traces: list[Trace] = []
    for output, root, now in zip(outputs, source.roots, view.roots, strict=True):
        before, after = loaded[0][root], made[now]
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
            )
        )
    return Proof(tuple(traces), tuple(firings))


def _matched(run: Saturating) -> dict[str, Rule]:
    """The rules that matched, by the names that reports use."""
    matched = {name for phase in run.report.phases for name in phase.matches}
    rules = ((name, rule) for rule in run.book().rules for name in rule.reported)
    return {name: rule for name, rule in rules if name in matched or name == CONSTANT}


def _steps(forest: Forest, terms: Terms, source: Term, target: Term) -> tuple[Step, ...]:
    """Rewrites of tensors first, then what makes kernels of them.

    Where rules of the user rewrite within kernels, these are among the others.
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
    """What a match says, of terms."""

    rule: str
    given: Pairs
    deduced: tuple[Deduced, ...]
    edges: list[tuple[Term, Term]]
    made: list[Term]
    writes: list[tuple[str, Row]]


class _Classes:
    """The term that stands for each class of a run, and what its matches equate, in `forest`.

    A class is told by its oldest term.  Where a match reads a row of a relation, the tensors in it
    are told by the terms that the rule which wrote it had: it says more of these than that they
    are equal to others.  Where it reads that a value is a number, or constant, it is told by a term
    that is: what made that equal to others are steps of their own.
    """

    def __init__(
        self, terms: Terms, forest: Forest, rows: Rows, loaded: Mapping[ClassId, Term]
    ) -> None:
        self._terms, self._forest, self._rows, self._loaded = terms, forest, rows, loaded
        self._term: dict[Key, Term] = {}
        self._meant: dict[Key, Term] = {}

    def learn(self, moment: Moment) -> Iterator[Firing]:
        """Add what `moment` says, and tell what its rules did."""
        for key, what in moment.classes:
            term = self._instance(what) if isinstance(what, Node) else self._loaded[what]
            self._forest.add(term)
            self._term[key] = term
        matches, nodes = Counter[str](), Counter[str]()
        constants = [match for match in moment.matches if match.rule == CONSTANT]
        others = [match for match in moment.matches if match.rule != CONSTANT]
        for some in filter(None, (constants, others)):  # constants were there before the others
            self._rows.refresh()
            found = list(map(self._match, some))
            for left, _ in (edge for one in found for edge in one.edges):
                self._forest.add(left)
            for one in found:
                matches[one.rule] += 1
                nodes[one.rule] += sum(map(self._forest.add, one.made))
            for one in found:
                self._adopt(one)
        for rule, count in matches.items():
            yield Firing(moment.phase, moment.iteration, rule, count, nodes[rule])

    def _adopt(self, one: _Learnt) -> None:
        """Let hold what a match says."""
        for left, right in one.edges:
            self._forest.unite(left, right, one.rule, one.given, one.deduced)
        for name, row in one.writes:
            for term in terms_in(row):
                self._forest.add(term)
            time = self._forest.clock
            self._rows.add(Deduced(one.rule, name, row, time, one.given, one.deduced))

    def _match(self, match: Match) -> _Learnt:
        """What `match` says, of the tensors that the rows it reads were written with."""
        self._meant = {}
        deduced: dict[Deduced, None] = {}
        given: list[tuple[Term, Term]] = []
        for name, row in match.reads:
            now = self._row(row)
            for term in terms_in(now):
                self._forest.add(term)
            read, because = self._read(name, now)
            deduced.update(dict.fromkeys(because))
            for key, term in zip(_keys(row), terms_in(read), strict=True):
                if isinstance(key, Key) and self._meant.setdefault(key, term) is not term:
                    given.append((self._meant[key], term))
        given += self._pairs(match.given)
        return _Learnt(
            match.rule,
            tuple(given),
            tuple(deduced),
            list(self._pairs(match.edges)),
            [self._instance(of) for of in match.made if of],
            [(name, self._row(row)) for name, row in match.writes],
        )

    def _read(self, name: str, row: Row) -> tuple[Row, tuple[Deduced, ...]]:
        """The `row` that is read, of the terms of which it is known, and by what it is."""
        if name in (CONST_SCALAR, IS_CONST) and row[0] is not None:
            witness = self._rows.witness(name, row[0])
            return ((witness.term, *row[1:]), witness.deduced) if witness else (row, ())
        found = self._rows.find(name, row)
        return (found.row, (found,)) if found else (row, ())

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
            return self._meant.get(of) or self._forest.oldest(self._term[of])
        return self._terms.term(of.over(self._instance))


def _keys(row: tuple[Any, ...]) -> Iterator[Key | Made]:
    """What stands for terms in a row."""
    for item in row:
        if isinstance(item, Key | Node):
            yield item
        elif isinstance(item, tuple):
            yield from _keys(item)


def _is_constant(view: View, c: ClassId, term: Term) -> bool:
    return term.op == LEAF and view.classes[c].is_const


def _terms_of(terms: Terms, view: View) -> dict[ClassId, Term]:
    """A term for each class of `view`, by the first of its nodes that can be."""
    found: dict[ClassId, Term] = {}
    waiting = [(c, node) for c, eclass in view.classes.items() for node in eclass.nodes]
    while waiting:
        later: list[tuple[ClassId, ENode]] = []
        for c, node in waiting:
            if c in found:
                continue
            if all(k in found for k in node.operands):
                found[c] = terms.term(canonical(node.over(found.__getitem__)))
            else:
                later.append((c, node))
        if len(later) == len(waiting):
            break
        waiting = later
    return found


def _numbers(
    terms: Terms, view: View, loaded: Mapping[ClassId, Term]
) -> Iterator[tuple[Term, Term]]:
    """The constants of `view` that are one number, each with that number."""
    for c, term in loaded.items():
        info, value = view.classes[c].struct_info, view.classes[c].scalar
        if term.op == LEAF and value is not None and info.dims == ():
            yield term, terms.term(scalar_node(value, info.dtype or ""))


def _program_terms(terms: Terms, view: View, program: Program) -> dict[ClassId, Term]:
    """What `program` makes of each class that it needs."""
    found: dict[ClassId, Term] = {}
    for choice in program:
        if isinstance(choice.how, Node):
            (c,) = choice.outputs
            found[c] = terms.term(canonical(choice.how.over(found.__getitem__)))
        else:
            made = kernel_terms(terms, choice.how, [found[c] for c in choice.inputs])
            found.update(zip(choice.outputs, made, strict=True))
    return found
