"""Replays of the proofs of many optimizations: each model and seed is a task."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

from relax_egraph.base.journal import Journal
from relax_egraph.base.run_input import RunInput
from relax_egraph.errors import ProofError, ReplayError, SaturationError
from relax_egraph.ir.module import IRModule
from relax_egraph.optimize.session import Session
from relax_egraph.proof.replay import Replayed, replay
from relax_egraph.proof.trace import Trace
from relax_egraph.reasons.explain import explain
from relax_egraph.reasons.no_block import NO_BLOCK
from relax_egraph.reasons.task_input import digest_of_module, parts_of, require_plain
from relax_egraph.rules import Given, read
from relax_egraph.verify.values.tolerance import ORDER, Need
from relax_egraph.workers.executor import ExecutorOf
from relax_egraph.workers.process import Death, Limits
from relax_egraph.workers.tasks import Task, answers

_LIMITS = Limits(4 * 3600.0)
"""The most time of a task."""


@dataclass(frozen=True)
class Replays:
    """What is replayed: optimizations of `models`, with `rules` and `options` of `optimize`.

    Each proof is computed on the random values of each of the `seeds`, with symbols of `sizes`, or
    of small random ones.
    """

    models: Mapping[str, IRModule]
    rules: Sequence[Given] = ()
    seeds: Sequence[int] = (0,)
    sizes: Mapping[str, int] | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ModelReplayed:
    """The replay of the proofs of all outputs of a `model`, with a `seed`.

    `steps`, `values` and `uncomputed` are counts, `error` is the largest difference and `needs` the
    weakest float class, as in `Replayed`.  A step that does not hold is the `failure`, in words;
    the `rules` are suspected of it.
    """

    model: str
    seed: int
    steps: int = 0
    values: int = 0
    error: float = 0.0
    needs: Need = "exact"
    uncomputed: int = 0
    failure: str = ""
    rules: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The result as plain data."""
        return asdict(self) | {"rules": list(self.rules)}


def replays(
    what: Replays, executor: ExecutorOf | None = None, journal: Journal | None = None
) -> Generator[ModelReplayed]:
    """The replay of each model with each seed, as they are ready; those in the `journal` are known.

    Raises ``ValueError`` for a module without dataflow blocks, for `sizes` as `replay` does, for
    rules or operators with Python code beside an executor or a journal, and for a journal of other
    rules, options or models.  A proof that is not found is a failure, too.
    """
    session = Session((read(what.rules),), **what.options)
    if executor is not None or journal is not None:
        require_plain([*what.models.values()], session)
    parts = {**parts_of(session), "sizes": sorted((what.sizes or {}).items())}
    digests = {name: digest_of_module(module) for name, module in what.models.items()}
    tasks = [
        Task(
            ["replay", parts, digests[name], seed],
            partial(
                *(_replayed, (digests[name], repr(parts)), module, session.rules[0]),
                *(dict(what.options), seed, what.sizes),
            ),
            (name, seed),
        )
        for name, module in what.models.items()
        for seed in what.seeds
    ]
    each = [f"{digest} {seed}" for digest in digests.values() for seed in what.seeds]
    RunInput("replay", parts, "models or seeds", each).require_in(journal)
    for task, data in answers(tasks, executor, journal, _LIMITS, _begin):
        model, seed = task.subject
        if isinstance(data, Death):
            yield ModelReplayed(model, seed, failure=f"its process {data}")
        else:
            yield ModelReplayed(model, seed, **data | {"rules": tuple(data["rules"])})


def _begin() -> None:
    """Import what tasks need."""
    import_module("relax_egraph.optimize.run")


_Key: TypeAlias = tuple[str, str]

_proven = dict[_Key, tuple[Trace, ...]]()
"""The traces of the last model: its next seed needs no other proof."""


def _replayed(
    key: _Key,
    module: IRModule,
    rules: Given,
    options: Mapping[str, Any],
    seed: int,
    sizes: Mapping[str, int] | None,
) -> dict[str, Any]:
    """In a task: the replay of one model, which is `key`, as plain data."""
    try:
        every = [replay(t, seed=seed, sizes=sizes) for t in _traces(key, module, rules, options)]
    except ReplayError as problem:
        return {"failure": str(problem), "rules": [*problem.rules]}
    except (ProofError, SaturationError) as problem:
        return {"failure": f"it has no proof: {problem}", "rules": []}
    return _together(every)


def _together(every: Sequence[Replayed]) -> dict[str, Any]:
    return {
        "steps": sum(one.steps for one in every),
        "values": sum(one.values for one in every),
        "error": max((one.error for one in every), default=0.0),
        "needs": max((one.needs for one in every), key=ORDER.index, default="exact"),
        "uncomputed": sum(len(one.uncomputed) for one in every),
        "rules": [],
    }


def _traces(
    key: _Key, module: IRModule, rules: Given, options: Mapping[str, Any]
) -> tuple[Trace, ...]:
    if key not in _proven:
        _proven.clear()
        reasons = explain(module, [rules], **options)
        if not reasons.regions:
            raise ValueError(NO_BLOCK)
        _proven[key] = reasons.traces
    return _proven[key]
