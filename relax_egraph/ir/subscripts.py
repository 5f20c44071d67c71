"""The subscripts of ``einsum``: ``"ij,jk->ik"``, ``"...ij->...ji"``, ``"ii"``.

A term for each operand, a letter for each axis; an ellipsis is any number of axes, which
broadcast from the last backwards.  Without ``->`` the result has the axes of the ellipsis, and
then the letters that occur once, in alphabetical order (capitals first).  Blanks are ignored.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")

ELLIPSIS = "..."


@dataclass(frozen=True, slots=True)
class Subscripts:
    """The labels of the operands' axes and of the result's, in order.

    A label is a letter, or for an axis of an ellipsis its number, counted from the last.
    """

    terms: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]

    @property
    def summed(self) -> tuple[str, ...]:
        """The labels that the result lacks, in order of appearance."""
        every = dict.fromkeys(label for term in self.terms for label in term)
        return tuple(label for label in every if label not in self.output)


def is_broadcast(label: str) -> bool:
    """Whether `label` is an axis of the ellipsis."""
    return label.isdigit()


def output_rank(text: str, operands: int) -> int:
    """The rank of the result, -1 if it depends on an ellipsis; raises as `read_subscripts`."""
    terms, output = _split(text, operands)
    return -1 if any(ELLIPSIS in t for t in (*terms, output)) else len(output)


def read_subscripts(text: str, ranks: Sequence[int]) -> Subscripts:
    """The axes of operands of `ranks`; raises ``ValueError`` if `text` does not fit them."""
    terms, output = _split(text, len(ranks))
    wild: list[int] = []
    for term, rank in zip(terms, ranks, strict=True):
        letters = len(term.replace(ELLIPSIS, ""))
        if rank < letters or (rank > letters and ELLIPSIS not in term):
            raise ValueError(f'"{term}" does not fit an operand of rank {rank}')
        wild.append(rank - letters)
    widest = max(wild, default=0)
    if widest and ELLIPSIS not in output:
        raise ValueError("the result needs an ellipsis, as an operand has one")
    return Subscripts(
        tuple(_labels(term, count) for term, count in zip(terms, wild, strict=True)),
        _labels(output, widest),
    )


def _split(text: str, operands: int) -> tuple[list[str], str]:
    """The terms of the operands and of the result, written or implied."""
    inputs, arrow, output = text.replace(" ", "").partition("->")
    terms = inputs.split(",")
    for term in (*terms, output):
        if not _TERM.fullmatch(term):
            raise ValueError(f'"{term}" is not of letters and at most one ellipsis')
    if len(terms) != operands:
        raise ValueError(f"{len(terms)} terms for {operands} operands")
    counts = Counter(inputs.replace(ELLIPSIS, "").replace(",", ""))
    if not arrow:
        once = "".join(sorted(letter for letter, count in counts.items() if count == 1))
        return terms, (ELLIPSIS if ELLIPSIS in inputs else "") + once
    letters = output.replace(ELLIPSIS, "")
    if len(set(letters)) != len(letters):
        raise ValueError(f'the result "{output}" repeats a letter')
    if unknown := [letter for letter in letters if letter not in counts]:
        raise ValueError(f'the letter "{unknown[0]}" of the result is of no operand')
    return terms, output


def _labels(term: str, wild: int) -> tuple[str, ...]:
    before, dots, after = term.partition(ELLIPSIS)
    middle = [str(k) for k in reversed(range(wild))] if dots else []
    return (*before, *middle, *after)
