"""Which candidates follow from rules: both sides are loaded, rules run, and classes compared.

A candidate follows if its sides become equal in every world where its left side has a value.  The
shapes of worlds are symbolic where they can be; a batch of candidates is in one e-graph, as in
Ruler.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from relax_egraph.discover.candidates import Candidate
from relax_egraph.discover.evaluation import DTYPE
from relax_egraph.discover.terms import Apply, Number, Term, Variable, Vector
from relax_egraph.discover.worlds import TENSORS, WORLDS, World
from relax_egraph.egraph.encoding import literals
from relax_egraph.egraph.encoding.constructors import constructors
from relax_egraph.egraph.recording.trial import try_families
from relax_egraph.egraph.rulebook.book import OWN_PHASE, RuleBook
from relax_egraph.errors import SaturationError
from relax_egraph.rules import Rules


def derived(
    families: Sequence[str], fast_math: bool, rules: str, candidates: Sequence[Candidate]
) -> list[bool]:
    """Whether `families` of the book and `rules` prove each of `candidates`, within a trial."""
    of_user = [Rules((("found.egg", rules),))] if rules else []
    book = RuleBook.default(of_user, families=families, fast_math=fast_math)
    try:
        return _derived(book, candidates)
    except SaturationError:
        return [False] * len(candidates)


def _derived(book: RuleBook, candidates: Sequence[Candidate]) -> list[bool]:
    families = [name for name in book.rulesets if name not in OWN_PHASE]
    pairs: list[list[tuple[int, int]]] = []
    numbers = 0
    program: list[str] = []
    for one in candidates:
        pairs.append([])
        for k in one.worlds:
            load = Loaded(k)
            left, right = load.term(one.left), load.term(one.right)
            load.lines += [f"(union {left} (Value {numbers}))"]
            load.lines += [f"(union {right} (Value {numbers + 1}))"]
            pairs[-1].append((numbers, numbers + 1))
            numbers += 2
            program.append("\n".join(load.lines))
    trial = try_families(book, families, program, {})
    return [all(trial.values[a] == trial.values[b] for a, b in both) for both in pairs]


@dataclass(slots=True)
class Loaded:
    """Terms in a world, as the actions `lines`: each term has a name that begins with `prefix`."""

    world_number: int
    prefix: str = "t"
    lines: list[str] = field(default_factory=list[str])
    _names: dict[Term, str] = field(default_factory=dict[Term, str])

    @property
    def world(self) -> World:
        """The world."""
        return WORLDS[self.world_number]

    def term(self, term: Term) -> str:
        """The name of `term`, which is a value of the program."""
        if term not in self._names:
            text = self._text(term)
            at = len(self._names)
            name = self._names[term] = f"{self.prefix}{at}"
            self.lines += [f"(let {name} {text})", f"(set (source-index {name}) {at})"]
            if isinstance(term, Variable):
                self.lines += [
                    f"(shape-claim {name} {literals.shape(self.world.shape)})",
                    f"(dtype-claim {name} {literals.string(DTYPE)})",
                ]
        return self._names[term]

    def _text(self, term: Term) -> str:
        shape = literals.shape(self.world.shape)
        match term:
            case Variable():
                return f"(Leaf {len(TENSORS) * self.world_number + TENSORS.index(term)})"
            case Number(value):
                number = f"(R.const {literals.number(value)} {literals.string(DTYPE)})"
                return f"(R.broadcast_to {number} {shape})"
            case Apply(head, args):
                params = constructors()[head].params
                pairs = zip(params, args, strict=True)
                return f"({' '.join([head, *(self._argument(p.sort, arg) for p, arg in pairs)])})"
            case _:
                raise TypeError(f"{term} is no tensor")

    def _argument(self, sort: str, term: Term) -> str:
        if sort == "Tensors" and isinstance(term, Vector):
            return literals.vector([*map(self.term, term.items)])
        if sort == "Tensor":
            return self.term(term)
        value = self.world.attribute(term)
        return literals.shape(value) if sort == "Shape" else literals.attribute(sort, value) or ""
