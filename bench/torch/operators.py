"""torch's own database of operators, sample by sample, as exported programs: what agrees.

Run from the top of the repository:
``python -m bench.torch.operators [WORDS] [--dtypes float32,bool] [--samples N] [--json FILE]``.
Each sample is exported, imported, optimized, built, run and compared with torch, in what torch
defines of its result.  The samples of an operator and dtype are a task, in processes of this
machine or with ``--ray ADDRESS`` on a cluster; a run that was stopped goes on from its
``--journal``.
"""

import json
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

import relax_egraph as rx
from bench.case_pool import Suite, outcomes
from bench.torch.defined import difference
from relax_egraph.cli import options
from relax_egraph.cli.executors import executor_of, journal_in
from relax_egraph.cli.group import usable
from relax_egraph.errors import ModelError, RelaxEgraphError


@dataclass(frozen=True, slots=True)
class Case:
    """An operator of the database, by its place in it, with samples of a dtype."""

    place: int
    name: str
    dtype: str
    samples: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a sample: the `reason` is empty if it agrees.

    It is `core` if torch's decompositions reduce it to core ATen.
    """

    name: str
    dtype: str
    sample: int
    core: bool
    reason: str


class Program(torch.nn.Module):
    """An operator on the tensors of a sample; what else the sample has is a part of it."""

    def __init__(self, function: Any, sample: Any) -> None:
        super().__init__()
        self._function = function
        leaves, self._tree = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        self._leaves = leaves
        self._places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """The tensors of the sample, which are what it is called with."""
        return tuple(self._leaves[k].detach() for k in self._places)

    def forward(self, *tensors: torch.Tensor) -> Any:
        """The operator on `tensors` in place of those of the sample."""
        leaves = list(self._leaves)
        for place, tensor in zip(self._places, tensors, strict=True):
            leaves[place] = tensor
        first, rest, named = pytree.tree_unflatten(leaves, self._tree)
        return self._function(first, *rest, **named)


def cases(words: Sequence[str], dtypes: Sequence[str], samples: int) -> list[Case]:
    """The operators whose names have one of `words`, or all."""
    return [
        Case(place, op.formatted_name, dtype, samples)
        for place, op in enumerate(op_db)
        if not words or any(word in op.formatted_name for word in words)
        for dtype in dtypes
        if op.supports_dtype(getattr(torch, dtype), "cpu")
    ]


def run(case: Case) -> list[Outcome]:
    """The outcomes of all samples of `case`."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    np.seterr(all="ignore")
    torch.manual_seed(0)
    return [
        Outcome(case.name, case.dtype, number, *outcome)
        for number, sample in _samples(case)
        if (outcome := _outcome(op_db[case.place], sample)) is not None
    ]


def _samples(case: Case) -> Iterator[tuple[int, Any]]:
    found = op_db[case.place].sample_inputs("cpu", getattr(torch, case.dtype))
    for number, sample in enumerate(found):
        if number == case.samples:
            return
        yield number, sample


def _outcome(op: Any, sample: Any) -> tuple[bool, str] | None:
    """Whether a sample is core, and why it fails; ``None`` if torch does not export it."""
    program = Program(op.op, sample)
    inputs = program.tensors
    own = tuple(t.clone() for t in inputs)
    try:
        expected = program(*own)
        exported = torch.export.export(program, inputs, strict=False)
        lowered = exported.run_decompositions()
    except Exception:
        return None
    names = lowered.graph_signature.user_inputs
    mutated = lowered.graph_signature.user_inputs_to_mutate.values()
    expected = (expected, [own[names.index(name)] for name in mutated])
    core = _is_core(lowered)
    try:
        return core, difference(op.name, sample, _results(exported, inputs), _leaves(expected))
    except ModelError as refusal:
        return core, str(refusal).splitlines()[-1].strip().rpartition(": ")[0] or str(refusal)
    except (RelaxEgraphError, Exception) as error:
        return core, f"{type(error).__name__}: {error}".splitlines()[0]


def _is_core(program: Any) -> bool:
    """Whether all calls of `program` are of core ATen, which excludes random numbers."""
    targets = [n.target for n in program.graph.nodes if n.op == "call_function"]
    overloads = [t for t in targets if isinstance(t, torch._ops.OpOverload)]
    random = any(torch.Tag.nondeterministic_seeded in t.tags for t in overloads)
    return not random and all(torch.Tag.core in t.tags for t in overloads)


def _results(exported: Any, inputs: Sequence[torch.Tensor]) -> list[Any]:
    machine = rx.VirtualMachine(rx.build(rx.optimize(rx.from_torch(exported))), num_threads=1)
    results = machine["main"](*map(_as_real, inputs))
    each = results if isinstance(results, tuple) else (results,)
    return [torch.from_dlpack(r) if isinstance(r, np.ndarray) else torch.tensor(r) for r in each]


def _leaves(results: Any) -> list[Any]:
    return [_as_real(leaf) for leaf in pytree.tree_leaves(results) if leaf is not None]


def _as_real(value: Any) -> Any:
    """A tensor of complex numbers by its parts along a last axis, as our programs have it."""
    is_complex = isinstance(value, torch.Tensor) and value.is_complex()
    return torch.view_as_real(value.resolve_conj()) if is_complex else value


def lost(case: Case, reason: str) -> list[Outcome]:
    """The outcomes of a case whose process died."""
    return [Outcome(case.name, case.dtype, 0, True, reason)]


def name(case: Case) -> str:
    """The operator, dtype and number of samples."""
    return f"{case.place} {case.name} {case.dtype} {case.samples}"


def failed(each: Sequence[Outcome]) -> bool:
    """Whether a sample does not agree."""
    return any(outcome.reason for outcome in each)


def data_of(each: Sequence[Outcome]) -> list[dict[str, Any]]:
    """The fields of outcomes."""
    return [*map(asdict, each)]


def outcomes_in(data: Sequence[dict[str, Any]]) -> list[Outcome]:
    """The outcomes of which `data` are the fields."""
    return [Outcome(**fields) for fields in data]


SUITE = Suite(
    "bench.torch.operators",
    *(name, run, lost, failed, data_of, outcomes_in),
    libraries=("torch", "numpy", "egglog", "llvmlite"),
)


def reported(each: Sequence[Outcome]) -> dict[str, Any]:
    """The counts of samples that agree, of all and of core ones, and the reasons of the others."""

    def counted(some: Sequence[Outcome]) -> dict[str, int]:
        return {"agree": sum(not o.reason for o in some), "of": len(some)}

    core = [o for o in each if o.core]
    reasons = Counter((o.name, o.dtype, o.core, o.reason) for o in each if o.reason)
    return {
        "all": counted(each),
        "core": counted(core),
        "failures": [
            {**dict(zip(("name", "dtype", "core", "reason"), key, strict=True)), "samples": count}
            for key, count in sorted(reasons.items())
        ],
    }


@click.command
@click.argument("words", nargs=-1)
@click.option(
    "--dtypes", default="float32,int64,bool", show_default=True, help="The dtypes of samples."
)
@click.option("--samples", default=6, show_default=True, help="The most of an operator and dtype.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write a report here.")
@options.processes
@options.tasks
def main(
    words: tuple[str, ...],
    dtypes: str,
    samples: int,
    file: Path | None,
    processes: int,
    ray_address: str | None,
    journal: Path | None,
) -> None:
    """Run operators whose names have one of WORDS, or all: print failures and counts."""
    chosen, kept = cases(words, dtypes.split(","), samples), journal_in(journal)
    with executor_of(ray_address, processes) as executor:
        every = usable(lambda: outcomes(SUITE, chosen, executor, kept))
    report = reported([o for some in every for o in some])
    for failure in report["failures"]:
        kind = "core" if failure["core"] else "    "
        print(f"{failure['samples']:3} {kind} {failure['name']} {failure['dtype']}:", end=" ")
        print(failure["reason"])
    for kind in ("all", "core"):
        print("{agree} of {of} samples agree".format(**report[kind]), f"({kind})")
    if file:
        file.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    from bench.torch import operators  # functions of `__main__` have no name in other processes

    operators.main()
