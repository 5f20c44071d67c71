"""Contraction of zero-cost classes, which removes them from the inputs of their users.

* A class that has a derivation of cost zero is fixed to it, and is no longer an input.
* A class whose only candidate costs nothing stands for the inputs of that candidate: its users
  depend on these instead.

Contraction neither adds nor removes cycles.
"""

from dataclasses import dataclass

from relax_egraph.extract.problem import Candidate, Problem, Solution, derivation

_MAX_INPUTS = 8
"""A class stands for at most so many inputs; more would fill the rows of the linear program."""


@dataclass(frozen=True, slots=True)
class Contracted:
    """A contracted problem, and the candidates that were fixed.

    `numbers` maps the remaining candidates to those of the whole problem; `fixed` has the candidate
    of the whole problem for each class that was removed.
    """

    problem: Problem
    numbers: tuple[int, ...]
    fixed: Solution


def contract(problem: Problem) -> Contracted:
    """Remove the classes that cost nothing; the roots must be computable.  Linear."""
    candidates = problem.candidates
    derivable = derivation(problem)
    usable = [
        number
        for number, candidate in enumerate(candidates)
        if candidate.inputs <= derivable.keys() and candidate.output not in candidate.inputs
    ]
    fixed = derivation(problem, [n for n in usable if candidates[n].cost == 0])
    stands_for = dict.fromkeys(fixed, frozenset[int]())
    count = dict.fromkeys(derivable, 0)
    for number in usable:
        count[candidates[number].output] += 1

    def resolved(inputs: frozenset[int]) -> frozenset[int]:
        return frozenset[int]().union(*(stands_for.get(d, (d,)) for d in inputs))

    for c, number in derivable.items():
        if c not in fixed and count[c] == 1 and candidates[number].cost == 0:
            inputs = resolved(candidates[number].inputs)
            if len(inputs) <= _MAX_INPUTS:
                stands_for[c] = inputs
                fixed[c] = number
    left: list[Candidate] = []
    numbers: list[int] = []
    for number in usable:
        output, inputs = candidates[number].output, resolved(candidates[number].inputs)
        if output not in fixed and output not in inputs:
            left.append(Candidate(output, inputs, candidates[number].cost))
            numbers.append(number)
    roots = resolved(frozenset(problem.roots))
    return Contracted(Problem(tuple(left), tuple(sorted(roots))), tuple(numbers), fixed)
