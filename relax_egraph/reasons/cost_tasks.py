"""Bisections of costs as tasks: of one model its tries, of several models each bisection."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

from relax_egraph.base.journal import Journal
from relax_egraph.base.run_input import RunInput
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.errors import RelaxEgraphError
from relax_egraph.ir.module import IRModule
from relax_egraph.optimize.session import Session
from relax_egraph.reasons.gains import CostBisected, Gain, bisect_cost, cost_bisected
from relax_egraph.reasons.progress import tries
from relax_egraph.reasons.restricted import LIMITS, Restricted
from relax_egraph.reasons.task_input import digest_of_module, parts_of, require_plain
from relax_egraph.rules import Given, read
from relax_egraph.workers.executor import Executor, ExecutorOf
from relax_egraph.workers.process import Death, Limits
from relax_egraph.workers.tasks import Ahead, Call, Task, answers

_LIMITS = Limits(24 * 3600.0)
"""The most time of a task: tries have budgets of their own."""


@dataclass(frozen=True)
class CostBisection:
    """What is bisected by cost: models, with `rules` and `options` of `optimize`."""

    models: Mapping[str, IRModule]
    rules: Sequence[Given] = ()
    gain: float = 0.9
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def session(self) -> Session:
        """The options with the limits of a bisection."""
        return Session((read(self.rules),), **{**LIMITS, **self.options})


def bisect_costs(
    bisection: CostBisection,
    executor: ExecutorOf | None = None,
    journal: Journal | None = None,
) -> Iterator[tuple[str, CostBisected]]:
    """What `bisect_cost` returns of each model, as they are ready.

    One model has tasks for its tries: the executor computes ahead what may be tried next.  Of
    several models the whole bisections are tasks.  Answers are those of this process, but for the
    seconds, and are in the `journal`.

    Raises ``ValueError`` for what `bisect_cost` refuses, for rules or operators with Python code,
    and for a journal of other rules, options or models.
    """
    session, known = bisection.session, journal or Journal()
    models = bisection.models
    if executor is not None or journal is not None:
        require_plain([*models.values()], session)
    parts = parts_of(session)
    digests = {name: digest_of_module(module) for name, module in models.items()}
    RunInput("cost", parts, "models", [*digests.values()]).require_in(journal)
    tasks = [
        Task(
            ["cost", parts, digests[name], bisection.gain],
            partial(_data, module, session.rules[0], bisection.gain, dict(bisection.options)),
            name,
        )
        for name, module in models.items()
    ]
    if executor is not None and len(models) > 1:
        yield from _each(bisection, answers(tasks, executor, known, _LIMITS))
        return
    for task in tasks:
        data = known.get(task.question)
        if data is None:
            tried = _Tried(["try", parts, digests[task.subject]], known)
            data = tried.bisected(models[task.subject], bisection, executor)
            known.put(task.question, data)
        yield from _each(bisection, [(task, data)])


def _each(
    bisection: CostBisection, found: Iterable[tuple[Task, Any | Death]]
) -> Iterator[tuple[str, CostBisected]]:
    session = bisection.session
    book = RuleBook.default([session.read_rules()], session.without, fast_math=True, bounded=True)
    by_name = {rule.name: rule for rule in book.rules}
    for task, data in found:
        if isinstance(data, Death):
            raise RelaxEgraphError(f"{task.subject}: the process of its bisection {data}")
        yield task.subject, _of_data(data, by_name)


def _data(
    module: IRModule, rules: Given, gain: float, options: Mapping[str, Any]
) -> dict[str, Any]:
    """In a task: the bisection of `module` as plain data."""
    return bisect_cost(module, [rules], gain=gain, progress=_quiet, **options).as_dict()


def _of_data(data: Mapping[str, Any], rules: Mapping[str, Rule]) -> CostBisected:
    """The bisection of which `CostBisected.as_dict` returned `data`."""
    assumed = {name: tuple(sizes) for name, sizes in data["assumed"].items()}
    plain = ("gain", "cost_before", "cost", "cost_with_rules", "tries", "seconds")
    return CostBisected(
        **{name: data[name] for name in plain},
        rules=tuple(rules[name] for name in data["rules"]),
        gains=tuple(
            Gain(rules[one["rule"]], one["cost"], one["share"], assumed) for one in data["gains"]
        ),
        redundant=tuple(rules[name] for name in data["redundant"]),
        assumed=assumed,
    )


@dataclass(frozen=True)
class _Tried:
    """Tries of one model, whose questions begin with `model`."""

    model: list[Any]
    journal: Journal

    def bisected(
        self, module: IRModule, bisection: CostBisection, executor: ExecutorOf | None
    ) -> dict[str, Any]:
        """The bisection of `module` as plain data."""
        begin = perf_counter()
        options = dict(bisection.options)
        with tries("bisecting", None) as told:
            restricted = Restricted.of(module, bisection.rules, options, told)
            if executor is None:
                ahead = Ahead(lambda call: call(), self.journal, 1)
                restricted.elsewhere = _Elsewhere(self.model, ahead, partial(_here, restricted))
                return cost_bisected(restricted, bisection.gain, begin).as_dict()
            rules = restricted.session.rules[0]
            with executor(partial(_begin, module, rules, options)) as pool:
                ahead = Ahead(partial(_run, pool), self.journal, pool.cores)
                with closing(ahead):
                    restricted.elsewhere = _Elsewhere(self.model, ahead, _there)
                    return cost_bisected(restricted, bisection.gain, begin).as_dict()


@dataclass(frozen=True)
class _Elsewhere:
    """Tries as tasks: `call` makes the call of a task of the names of rules, in order."""

    model: list[Any]
    ahead: Ahead
    call: Callable[[list[str]], Call]

    def measured(self, kept: frozenset[str]) -> tuple[float, Sequence[str]]:
        """The cost of the best program with the rules `kept`, and those of them that matched."""
        cost, matched = self.ahead.answer(self.task(kept))
        return cost, matched

    def expect(self, sets: Iterable[frozenset[str]]) -> None:
        """Begin with `sets` on idle cores."""
        self.ahead.expect(map(self.task, sets))

    def task(self, kept: frozenset[str]) -> Task:
        """The try of `kept`."""
        names = sorted(kept)
        return Task([*self.model, names], self.call(names))


def _run(pool: Executor, call: Call) -> Any:
    answer = pool.run(call, _LIMITS)
    if isinstance(answer, Death):
        raise RelaxEgraphError(f"the process of a try of the bisection {answer}")
    return answer


def _here(restricted: Restricted, names: list[str]) -> Call:
    return lambda: restricted.measured({*names})


_restricted = list[Restricted]()


def _begin(module: IRModule, rules: Given, options: Mapping[str, Any]) -> None:
    """Initialize a process for tries of `module`."""
    _restricted[:] = [Restricted.of(module, [rules], options, _quiet)]


def _there(names: list[str]) -> Call:
    return partial(_measured, names)


def _measured(names: list[str]) -> tuple[float, Sequence[str]]:
    return _restricted[0].measured({*names})


def _quiet(number: int, rules: int) -> None:
    """Nobody watches a task."""
