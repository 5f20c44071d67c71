"""The status of a candidate: what the check says of it as a rule, and what is proven of it."""

from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Any

from relax_egraph.discover.candidates import Candidate
from relax_egraph.discover.texts import rewrite
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Atom, Form, Source, Tree, is_literal
from relax_egraph.egraph.rulebook.reader import read
from relax_egraph.errors import SaturationError
from relax_egraph.prove.prove import prove
from relax_egraph.rules import Rules
from relax_egraph.verify.check import check_rules
from relax_egraph.verify.group import Group
from relax_egraph.verify.verdict import Verdict

_NAME = "candidate"


@dataclass(frozen=True, slots=True)
class Status:
    """What the check says: the verdict, in words too, the float class, and the guard it needs.

    The guard is the text of premises; the other fields are of the rule with this guard.  A rule
    that is checked has what `prove` says of it, as its `proof`.
    """

    kind: str
    is_rule: bool
    float_class: str
    guard: str
    words: str
    proof: str = ""

    @property
    def is_proven(self) -> bool:
        """Whether the rule holds for all extents."""
        return self.proof.startswith("proven")

    def as_dict(self) -> dict[str, Any]:
        """The fields for JSON."""
        return asdict(self)


UNANSWERED = Status("unanswered", False, "", "", "the check takes too much time or memory")


def fields_of(candidate: Candidate, fast_math: bool, seed: int) -> dict[str, Any]:
    """The fields of the status of `candidate`, for JSON."""
    return status_of(candidate, fast_math, seed).as_dict()


def status_of(candidate: Candidate, fast_math: bool = False, seed: int = 0) -> Status:
    """The status of `candidate`, with a guard that `verify` infers if it fails without one.

    It may reassociate; only with `fast_math` may it be of float class ``fast``.

    A guard that fixes an attribute, an extent, a rank or a dtype makes a special case of the
    equation, and is not taken.
    """
    stated = "fast" if fast_math else "reassociates"
    verdict = _verdict(candidate, "", stated, seed)
    guard = verdict.guard.partition(": (")[2]
    guard = f"({guard}" if guard else ""
    if verdict.kind == "conditional" and guard and not _is_special(guard):
        guarded = _verdict(candidate, guard, stated, seed)
        if guarded.sound:
            return _proved(_status(guarded, guard), candidate, seed)
    return _proved(_status(verdict, ""), candidate, seed)


_SEEDS = 2
"""The seeds with which a rule is checked again that is not proven."""


def _proved(status: Status, candidate: Candidate, seed: int) -> Status:
    """`status` with what is proven; a rule that is not has to pass the check with other seeds."""
    if not status.is_rule:
        return status
    proven = replace(status, proof=_proof(candidate, status))
    if proven.is_proven:
        return proven
    for other in range(seed + 1, seed + 1 + _SEEDS):
        verdict = _verdict(candidate, status.guard, status.float_class, other)
        if not verdict.sound:
            return _status(verdict, status.guard)
    return proven


def _proof(candidate: Candidate, status: Status) -> str:
    book = _book(candidate, status.guard, status.float_class)
    try:
        return str(prove(book.checked[0], book)).partition(": ")[2]
    except ModuleNotFoundError as missing:
        return f"not proven: {missing}"


def is_wrong(candidate: Candidate, fast_math: bool = False, seed: int = 0) -> bool:
    """Whether `candidate` fails on a random instance, beyond rounding."""
    book = _book(candidate, "", "fast" if fast_math else "reassociates")
    (rule,) = book.checked
    (head,) = rule.directions
    group = Group(book, head, Random(seed), chains={rule.name: (head,)})
    try:
        group.run()
    except SaturationError:
        return True
    return any(wrong.exceeds for wrong in group.wrong)


def _verdict(candidate: Candidate, guard: str, stated: str, seed: int) -> Verdict:
    (verdict,) = check_rules(_book(candidate, guard, stated), [_NAME], seed=seed)
    return verdict


def _book(candidate: Candidate, guard: str, stated: str) -> RuleBook:
    text = f"; float: {stated}\n{rewrite(candidate, guard, _NAME)}\n"
    return RuleBook.default([Rules((("", text),))], families=(), fast_math=True)


def _status(verdict: Verdict, guard: str) -> Status:
    head, _, words = str(verdict).partition("\n")[0].partition(": ")
    return Status(verdict.kind, verdict.sound, verdict.needs, guard, words if head else "")


def _is_special(guard: str) -> bool:
    """Whether one of the premises `guard` states that something has one value."""
    return any(map(_fixes, read(Source("guard", guard))))


def _fixes(premise: Form) -> bool:
    if premise.head not in ("=", "dim-equal"):
        return False
    return any(_is_value(side) for side in premise.items[1:])


def _is_value(side: Tree) -> bool:
    match side:
        case Atom(text=text):
            return is_literal(text)
        case Form(head=head):
            return head in ("vec-of", "vec-empty", "DimSym")
