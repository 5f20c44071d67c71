"""Candidates as text: the rewrite, its law in ordinary notation, and its name."""

from dataclasses import replace

from relax_egraph.discover.candidates import Candidate
from relax_egraph.discover.terms import (
    Apply,
    Literal,
    Number,
    ShapeOf,
    Term,
    Variable,
    Vector,
    leaves,
    premises,
    written,
)

_INFIX = {"add": "+", "subtract": "-", "multiply": "·", "divide": "/"}


def rewrite(candidate: Candidate, guard: str, name: str) -> str:
    """The rewrite of `candidate` under `guard`, premises in the notation of rules."""
    stated = [*premises(candidate.left, candidate.right), *([guard] if guard else [])]
    when = f"\n  :when ({' '.join(stated)})" if stated else ""
    return f'(rewrite {written(candidate.left)} {written(candidate.right)}{when}\n  :name "{name}")'


def equation(candidate: Candidate, guard: str, name: str) -> str:
    """The rewrite in both directions, if the right side binds all that the left side does.

    These are two rewrites: joined tensors are matched part by part on left sides only.
    """
    left, right = candidate.left, candidate.right
    text = rewrite(candidate, guard, name)
    if not isinstance(right, Apply) or set(leaves(left)) != set(leaves(right)):
        return text
    back = replace(candidate, left=right, right=left)
    return f"{text}\n{rewrite(back, guard, f'{name}-back')}"


def law(candidate: Candidate) -> str:
    """The equation in ordinary notation: ``x · y + x · z = x · (y + z)``."""
    return f"{_law(candidate.left)} = {_law(candidate.right)}"


def _law(term: Term, within: bool = False) -> str:
    match term:
        case Variable(name):
            return name
        case Number(value):
            return f"{value:g}"
        case ShapeOf(Variable(name)):
            return f"shape of {name}"
        case Literal(value=value):
            return str(value)
        case Vector(items):
            return f"[{', '.join(map(_law, items))}]"
        case Apply(head, args):
            op = head.rpartition(".")[2]
            if op in _INFIX:
                text = f" {_INFIX[op]} ".join(_law(arg, True) for arg in args)
                return f"({text})" if within else text
            if op == "negative":
                return f"-{_law(args[0], True)}"
            if op == "abs":
                return f"|{_law(args[0])}|"
            return f"{op}({', '.join(map(_law, args))})"


def name_of(candidate: Candidate, taken: set[str]) -> str:
    """A name of operators, outermost first, that is not `taken`: ``found-add-of-negative``."""
    base = f"found-{'-of-'.join(_heads(candidate.left))}".replace("_", "-")
    names = (base, *(f"{base}-{k}" for k in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def _heads(term: Term) -> list[str]:
    """The operator of `term` and those of its operands, each once."""
    match term:
        case Apply(head, args):
            below = dict.fromkeys(name for arg in args for name in _heads(arg))
            return [head.rpartition(".")[2], *below]
        case Vector(items):
            return [*dict.fromkeys(name for item in items for name in _heads(item))]
        case _:
            return []
