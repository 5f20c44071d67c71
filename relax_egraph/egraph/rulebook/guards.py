"""Guards: premises about dimensions that sympy answers, as egglog reads them.

    (dim-ge a (DimSym "8"))
    -->
    (= guard-1 (dim-text a))
    (= true (py-to-bool (py-call (dim-judge) (py-from-string "dim-ge") (py-from-string guard-1)
                                 (py-from-string "8"))))

A guard waits for the texts of its dimensions: a match of the other premises is asked about when
they are known.  What a guard builds of dimensions is not looked for in the e-graph.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

from relax_egraph.egraph.rulebook.forms import Atom, Form, Source, Tree
from relax_egraph.egraph.rulebook.reader import read
from relax_egraph.egraph.rulebook.vocabulary import DIM_OPERATORS, Declaration, Param


def _guard(name: str, first: str, second: str, meaning: str) -> Declaration:
    params = (Param(first, "Dim"), Param(second, "Dim"))
    return Declaration("relation", name, params, "Unit", f"a premise: {meaning}, always")


GUARDS = (
    _guard("dim-equal", "a", "b", "a = b"),
    _guard("dim-divides", "d", "n", "n is a multiple of d"),
    _guard("dim-ge", "a", "b", "a ≥ b"),
)
"""The guards, as declarations; egglog never sees them."""

GUARD_NAMES = frozenset(guard.name for guard in GUARDS)


@dataclass(frozen=True, slots=True)
class Expanded:
    """A rule as egglog reads it; `moved` says of each guard where it was, and where it is now."""

    text: str
    moved: tuple[tuple[range, range], ...] = ()

    def original(self, offset: int) -> int:
        """The place in the user's text of a place in this one."""
        shift = 0
        for was, now in self.moved:
            if offset < now.start:
                break
            if offset in now:
                return was.start
            shift = was.stop - now.stop
        return offset + shift


@lru_cache(1 << 12)
def expand(rule: str) -> Expanded:
    """The text of a rule with each guard as the premises that ask sympy."""
    if not any(name in rule for name in GUARD_NAMES):
        return Expanded(rule)
    (form,) = read(Source("", rule))
    fresh = (name for k in count(1) if (name := f"guard-{k}") not in rule)
    text, end, moved = "", 0, list[tuple[range, range]]()
    for guard in premises(form):
        if isinstance(guard, Form) and guard.head in GUARD_NAMES:
            text += rule[end : guard.start]
            asked = _asked(guard, rule, fresh)
            moved.append((range(guard.start, guard.end), range(len(text), len(text) + len(asked))))
            text, end = text + asked, guard.end
    return Expanded(text + rule[end:], tuple(moved))


def premises(form: Form) -> tuple[Tree, ...]:
    """What must hold of a match: the facts of :when, or of a rule's body."""
    if form.head == "rule":
        body = form.items[1] if len(form.items) > 1 else None
    else:
        names = [item.text if isinstance(item, Atom) else "" for item in form.items]
        body = form.items[names.index(":when") + 1] if ":when" in names[:-1] else None
    return body.items if isinstance(body, Form) else ()


def _asked(guard: Form, rule: str, fresh: Iterator[str]) -> str:
    """The premises of `guard`, in one line."""
    known: list[str] = []
    texts = [_text(argument, rule, fresh, known) for argument in guard.items[1:]]
    arguments = " ".join(f"(py-from-string {text})" for text in (f'"{guard.head}"', *texts))
    return " ".join((*known, f"(= true (py-to-bool (py-call (dim-judge) {arguments})))"))


def _text(dim: Tree, rule: str, fresh: Iterator[str], known: list[str]) -> str:
    """The text of `dim` as an expression of strings, over premises that are added to `known`."""
    if isinstance(dim, Form) and dim.head == "DimSym":
        return rule[dim.items[1].start : dim.items[1].end]
    if isinstance(dim, Form) and dim.head in DIM_OPERATORS:
        a, b = (_text(item, rule, fresh, known) for item in dim.items[1:])
        return f'(+ "(" {a} ") {DIM_OPERATORS[dim.head]} (" {b} ")")'
    name = next(fresh)
    known.append(f"(= {name} (dim-text {' '.join(rule[dim.start : dim.end].split())}))")
    return name
