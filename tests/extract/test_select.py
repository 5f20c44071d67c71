"""The cheapest choice is found, is never cyclic, and is reported for what it is."""

import math
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import highspy
import pytest

from relax_egraph.errors import ExtractionError
from relax_egraph.extract import mip, search
from relax_egraph.extract.certificate import certify, cheapest
from relax_egraph.extract.dual_ascent import Ascent
from relax_egraph.extract.effort import Effort
from relax_egraph.extract.greedy import greedy
from relax_egraph.extract.problem import Candidate, Problem, Selection, computable, in_order
from relax_egraph.extract.prune import Pruned, prune
from relax_egraph.extract.relaxation import Relaxation
from relax_egraph.extract.select import select
from relax_egraph.extract.subproblems import subproblems_of

AT_ONCE = Effort(0.0, 0.0)


def random_problem(seed: int, classes: int = 8) -> Problem:
    """Each class can be made of lower ones, perhaps of any at all, and most have other ways too."""
    r = random.Random(seed)
    candidates: list[Candidate] = []
    for c in range(classes):
        lower = range(c) if r.random() < 0.95 else range(classes)
        inputs = frozenset(r.sample(lower, min(c, r.randint(1, 3))))
        candidates.append(Candidate(c, inputs, float(r.randint(0, 9))))
        for _ in range(r.randint(0, 3)):
            inputs = frozenset(r.sample(range(classes), r.randint(1, 3)))
            candidates.append(Candidate(c, inputs, r.choice((0.0, 0.5, 1.0, 1.0, 2.0, 3.0, 7.0))))
    return Problem(tuple(candidates), tuple(r.sample(range(2, classes), r.randint(1, 2))))


def made(output: int, *inputs: int, cost: float) -> Candidate:
    return Candidate(output, frozenset(inputs), cost)


SHARING = Problem(
    (
        made(0, cost=1),
        made(1, 0, cost=6),
        made(2, 0, cost=7),
        made(2, 1, cost=1),
        made(3, 0, cost=2.5),
        made(3, 1, cost=1),
        made(4, 0, cost=2.5),
        made(4, 1, cost=1),
        made(5, 2, 3, 4, cost=0),
        made(5, 0, cost=12),
    ),
    (5,),
)
"""Making class 1 is best used by all three of its users, but two would not pay a third of it: a
case for a solver."""


@pytest.fixture
def unexpanded(monkeypatch: pytest.MonkeyPatch) -> None:
    """No frontier is expanded before relaxations, unless dual ascent proves little."""
    monkeypatch.setattr(search, "FEW_FRONTIERS", 0)
    monkeypatch.setattr(search, "SOME_FRONTIERS", 0)


@pytest.fixture
def unascended(unexpanded: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dual ascent finds no barrier, and guides no greedy solution."""

    def nothing(problem: Problem, pruned: Pruned, *_: object) -> tuple[Ascent, ...]:
        return (Ascent({}, 0.0, {n: 1.0 for n in range(len(problem.candidates))}),)

    monkeypatch.setattr(search, "ascents", nothing)
    monkeypatch.setattr(search, "WEAK", 0.0)


@pytest.fixture
def weak(unexpanded: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dual ascent proves half of what it could: too little to go on with barriers."""
    ascents = search.ascents

    def half(*args: Any) -> tuple[Ascent, ...]:
        return tuple(replace(ascent, bound=ascent.bound / 2) for ascent in ascents(*args))

    monkeypatch.setattr(search, "ascents", half)


@pytest.fixture
def unrelaxed(unascended: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The relaxation rules nothing out either."""
    relaxations = mip.relaxations

    def weak(problem: Problem, *rest: Any) -> Iterator[Relaxation]:
        for relaxed in relaxations(problem, *rest):
            nothing = dict.fromkeys(relaxed.extra, 0.0)
            yield replace(relaxed, bound=0.0, taken=nothing, extra=nothing)

    monkeypatch.setattr(mip, "relaxations", weak)


@pytest.fixture
def unruled(unrelaxed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every problem is too wide for frontiers, and is left to the solver."""
    monkeypatch.setattr(search, "MAX_FRONTIERS", 0)


@pytest.mark.parametrize(
    ("ways", "source"),
    [
        ((), "frontiers"),
        (("unexpanded",), "dual ascent"),
        (("weak",), "frontiers"),
        (("unascended",), "multipliers of the linear program"),
        (("unrelaxed",), "frontiers"),
        (("unruled",), "HiGHS"),
    ],
)
def test_random_cyclic_problems_are_solved_as_well_as_by_trying_everything(
    ways: tuple[str, ...], source: str, request: pytest.FixtureRequest
) -> None:
    for way in ways:
        request.getfixturevalue(way)
    statuses: Counter[str] = Counter()
    cyclic = 0
    for seed in range(300):
        problem = random_problem(seed)
        best = cheapest(problem)
        if best == math.inf:
            with pytest.raises(ExtractionError):
                select(problem)
            continue

        found = select(problem)

        certify(problem, found)
        assert found.cost == pytest.approx(best), seed
        assert found.bound == pytest.approx(best), seed
        assert found.status == "optimal", seed
        statuses[found.bound_source] += 1
        cyclic += max(prune(problem).size.values()) > 1
    assert statuses.total() >= 200
    assert statuses[source] >= 20, statuses
    assert cyclic >= 40


@pytest.mark.fuzz
def test_bounds_of_many_random_problems_never_exceed_the_cost() -> None:
    for number in range(2000):
        problem = random_problem(100_000 + number, classes=6 + number % 5)
        best = cheapest(problem)
        if best == math.inf:
            continue
        for effort in (Effort(10.0, 0.0), AT_ONCE):
            found = select(problem, effort=effort)
            certify(problem, found)
            assert found.bound <= best * (1 + 1e-9) + 1e-12, number
            assert found.cost >= best * (1 - 1e-9), number
            assert effort is AT_ONCE or found.cost == pytest.approx(best), number


def test_greedy_solutions_of_random_problems_are_solutions() -> None:
    for seed in range(700, 900):
        problem = random_problem(seed, classes=12)
        if not computable(problem).issuperset(problem.roots):
            continue

        solution, cost = greedy(problem, prune(problem))

        order = in_order(problem, solution)
        assert order is not None
        certify(problem, Selection(order, cost, 0.0, "", "", 0.0))


def test_pruning_keeps_a_best_solution() -> None:
    for seed in range(900, 1200):
        problem = random_problem(seed)
        if not computable(problem).issuperset(problem.roots):
            continue

        left = prune(problem)

        numbers = [n for options in left.options.values() for n in options]
        smaller = Problem(tuple(problem.candidates[n] for n in numbers), problem.roots)
        assert cheapest(smaller) == pytest.approx(cheapest(problem)), seed


def test_a_shared_class_is_paid_once() -> None:
    found = select(SHARING)

    assert (found.cost, found.bound, found.gap) == (10.0, 10.0, 0.0)
    assert (found.status, found.bound_source) == ("optimal", "frontiers")


@pytest.mark.usefixtures("unruled")
def test_a_gap_that_is_admitted_is_not_closed() -> None:
    exact, near = select(SHARING), select(SHARING, effort=Effort(10.0, 1.0))

    certify(SHARING, near)
    assert (exact.cost, exact.status) == (10.0, "optimal")
    assert near.cost == 13.0
    assert near.status == f"gap {100 * near.gap:.1f} %, close enough"


def test_a_search_begins_with_the_solution_that_it_is_told() -> None:
    best = select(SHARING)

    plain, told = (
        select(SHARING, effort=AT_ONCE, start=s) for s in (frozenset[int](), frozenset(best.chosen))
    )

    certify(SHARING, told)
    assert (plain.cost, told.cost) == (13.0, 10.0)
    assert told.status == f"gap {100 * told.gap:.1f} %, time limit"


def test_the_cheapest_cycle_is_not_taken() -> None:
    problem = Problem(
        (
            made(0, 1, cost=0),
            made(1, 0, cost=0),
            made(0, 2, cost=5),
            made(1, 2, cost=4),
            made(2, cost=1),
        ),
        (0, 1),
    )

    found = select(problem)

    assert [problem.candidates[n] for n in found.chosen] == [
        made(2, cost=1),
        made(1, 2, cost=4),
        made(0, 1, cost=0),
    ]
    assert found.cost == 5


def test_nothing_is_chosen_where_nothing_is_needed() -> None:
    found = select(Problem((made(0, cost=1),), ()))

    assert (found.chosen, found.cost, found.status) == ((), 0.0, "optimal")


def test_a_root_that_only_a_cycle_makes_is_refused() -> None:
    problem = Problem((made(0, 1, cost=0), made(1, 0, cost=0)), (1,))

    with pytest.raises(ExtractionError) as caught:
        select(problem)

    assert str(caught.value) == "class 1 is a root and has no finite program"


def test_without_time_the_greedy_solution_comes_with_its_gap() -> None:
    problem = random_problem(3, classes=60)

    found = select(problem, effort=AT_ONCE)

    certify(problem, found)
    assert found.gap > 0
    assert found.status == f"gap {100 * found.gap:.1f} %, time limit"


@pytest.mark.usefixtures("unascended")
def test_without_a_solver_the_greedy_solution_is_returned_and_said_to_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)

    found = select(SHARING)

    certify(SHARING, found)
    assert found.status == "greedy: the solver is not installed"
    assert found.bound_source == "needed classes"
    assert found.bound < 10 <= found.cost


@pytest.mark.usefixtures("unascended")
def test_a_solver_that_fails_leaves_the_greedy_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: highspy.Highs) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(highspy.Highs, "run", run)

    found = select(SHARING)

    certify(SHARING, found)
    assert found.status == "greedy: the solver failed: out of memory"


@pytest.mark.usefixtures("unascended")
def test_a_solver_that_answers_nothing_leaves_the_greedy_solution(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(self: highspy.Highs) -> None:
        """Returns before it begins."""

    monkeypatch.setattr(highspy.Highs, "run", run)

    found = select(SHARING)

    certify(SHARING, found)
    assert found.status == "greedy: the solver failed: Not Set"


def answering(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """The solver says that it takes this share of each candidate, whatever is asked."""
    get = highspy.Highs.getSolution

    def answer(self: highspy.Highs) -> highspy.HighsSolution:
        found = get(self)
        found.col_value = [share] * len(found.col_value)
        return found

    monkeypatch.setattr(highspy.Highs, "getSolution", answer)


@pytest.mark.usefixtures("unruled")
def test_an_incomplete_answer_of_the_solver_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answering(monkeypatch, 0.0)

    found = select(SHARING)

    certify(SHARING, found)
    assert (found.cost, found.bound_source) == (13.0, "needed classes")
    assert found.status == "greedy: the solver's result violates a constraint"


@pytest.mark.usefixtures("unruled")
def test_a_solver_that_always_answers_with_a_cycle_is_stopped_by_the_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = Problem((*SHARING.candidates, made(1, 2, 3, cost=3)), SHARING.roots)
    answering(monkeypatch, 1.0)

    found = select(problem, effort=Effort(0.05, 0.0))

    certify(problem, found)
    assert found.cost >= 10


@pytest.mark.usefixtures("unruled")
@pytest.mark.parametrize("bound", [None, 7.0])
def test_a_solver_that_is_killed_leaves_the_greedy_solution_and_its_bound(
    bound: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def solve(*_: object) -> mip.Outcome:
        return mip.Outcome(None, bound, mip.TIME_LIMIT)

    monkeypatch.setattr(mip, "solve", solve)

    found = select(SHARING)

    certify(SHARING, found)
    assert (found.cost, found.bound) == (13.0, 1.0 if bound is None else 8.0)
    assert found.status == f"gap {100 * found.gap:.1f} %, time limit"
    assert found.bound_source == ("needed classes" if bound is None else "HiGHS")


@pytest.mark.usefixtures("unruled")
def test_a_cyclic_solution_at_the_time_limit_is_not_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = Problem((*SHARING.candidates, made(1, 2, 3, cost=3)), SHARING.roots)

    def solve(part: Problem, *_: object) -> mip.Outcome:
        asked = {5: (2, 3, 4), 2: (1,), 3: (1,), 4: (1,), 1: (2, 3)}
        inputs = {c: frozenset(needed) for c, needed in asked.items()}
        numbered = enumerate(part.candidates)
        answer = {c.output: n for n, c in numbered if c.inputs == inputs.get(c.output)}
        assert in_order(part, answer) is None
        return mip.Outcome(answer, None, mip.TIME_LIMIT)

    monkeypatch.setattr(mip, "solve", solve)

    found = select(problem)

    certify(problem, found)
    assert found.cost == 11.5  # greedy, but it takes what the cyclic one does
    assert found.status == f"gap {100 * found.gap:.1f} %, time limit"


def test_what_every_solution_makes_cuts_a_problem_into_parts() -> None:
    step = [Candidate(c.output, c.inputs, c.cost) for c in SHARING.candidates[1:]]
    chain = [made(0, cost=1)]
    for layer in range(20):
        at = 5 * layer
        chain += [
            Candidate(c.output + at, frozenset(i + at for i in c.inputs), c.cost) for c in step
        ]
    problem = Problem(tuple(chain), (100,))

    parts = subproblems_of(problem, prune(problem))
    found = select(problem)

    assert Counter(len(part.problem.candidates) for part in parts) == {1: 1, 9: 20}
    assert all(candidate.inputs.isdisjoint({0, 5}) for candidate in parts[1].problem.candidates)
    assert found.cost == pytest.approx(1 + 20 * select(SHARING).cost - 20)
    assert (found.status, found.bound_source) == ("optimal", "frontiers")


def chain(length: int) -> Problem:
    """Each link is made of one of the two before it, or of both: only the last one is needed."""
    links = [made(0, cost=1), made(1, cost=1)]
    for c in range(2, length):
        links += [
            made(c, c - 1, cost=2 + c % 3),
            made(c, c - 2, cost=4 + c % 2),
            made(c, c - 1, c - 2, cost=1),
        ]
    return Problem(tuple(links), (length - 1,))


def test_a_long_problem_is_solved_however_many_programs_it_has() -> None:
    problem = chain(300)

    found = select(problem)

    certify(problem, found)
    assert found.status == "optimal"


def test_without_time_what_makes_several_classes_at_once_is_taken() -> None:
    group, roots = 0, (1, 2, 3)
    operator_cut = [Candidate(root, frozenset(), 2.0) for root in roots]
    members = [Candidate(root, frozenset({group}), 0.0) for root in roots]
    problem = Problem((Candidate(group, frozenset(), 3.0), *operator_cut, *members), roots)

    found = select(problem, effort=AT_ONCE)

    assert found.cost == 3.0
