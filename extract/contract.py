"""A problem without the classes that cost nothing to make: what needs them needs less.

* A class that can be made for nothing, all told, is made so; nobody has to ask for it.
* A class that only one candidate makes, and for nothing, is a name for what that one needs:
  whoever needs the class needs that.

Neither closes a cycle that was not there, and none that was there opens.
"""

from dataclasses import dataclass

from relax_egraph.extract.problem import Candidate, Problem, Solution, derivation

_WIDEST = 8
"""The most classes that one stands for; more would make long rows of short ones."""


@dataclass(frozen=True, slots=True)
class Contracted:
    """What is left of a problem, and how the classes that are not left are made.

    `numbers` are the numbers in the whole problem of the candidates that are left, and `fixed`
    says for the other classes which candidate of the whole makes them.
    """

    problem: Problem
    numbers: tuple[int, ...]
    fixed: Solution


def contract(problem: Problem) -> Contracted:
    """Take out what costs nothing; the roots must be computable.  Linear."""
    candidates = problem.candidates
    made = derivation(problem)
    usable = [
        number
        for number, candidate in enumerate(candidates)
        if candidate.inputs <= made.keys() and candidate.output not in candidate.inputs
    ]
    fixed = derivation(problem, [n for n in usable if candidates[n].cost == 0])
    stands_for = dict.fromkeys(fixed, frozenset[int]())
    ways = dict.fromkeys(made, 0)
    for number in usable:
        ways[candidates[number].output] += 1

    def resolved(inputs: frozenset[int]) -> frozenset[int]:
        return frozenset[int]().union(*(stands_for.get(d, (d,)) for d in inputs))

    for c, number in made.items():
        if c not in fixed and ways[c] == 1 and candidates[number].cost == 0:
            meant = resolved(candidates[number].inputs)
            if len(meant) <= _WIDEST:
                stands_for[c] = meant
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
