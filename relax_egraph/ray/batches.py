"""Tables through a saved model, by the actors of Ray Data: `map_batches`."""

import logging
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import file_digest
from pathlib import Path
from typing import Any

import numpy as np

from relax_egraph.base.parameters import COUNT, NAME, PATH, Kind, mapping, optional, takes
from relax_egraph.errors import RelaxEgraphError, RunError
from relax_egraph.inference.rows import Array, Arrays, rows_per_call, through
from relax_egraph.inference.signature import signature
from relax_egraph.inference.tensor import Tensor
from relax_egraph.ray.cluster import ray_module, require_ray

LOG = logging.getLogger(__name__)

Dataset = Any
"""A ``ray.data.Dataset``."""

MOST_ROWS = 256
"""The rows of a batch where neither the caller nor the plans of the model say how many."""


def _is_actors(value: Any) -> bool:
    some = value if isinstance(value, tuple) else (value, value)
    whole = all(type(n) is int and n >= 1 for n in some)
    return whole and len(some) == 2 and some[0] <= some[1]


_DATASET = Kind("a Dataset of ray.data", lambda value: hasattr(value, "map_batches"))
_ACTORS = Kind("a number of actors, or the least and the most, such as (1, 8)", _is_actors)
_COLUMNS = mapping("columns by input, such as {'x': 'image'}", NAME)
_OUTPUTS = Kind(
    'a sequence of names, such as ["logits"]',
    lambda value: (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(name, str) for name in value)
    ),
)


@takes(
    dataset=_DATASET,
    path=PATH,
    function=NAME,
    columns=optional(_COLUMNS),
    outputs=optional(_OUTPUTS),
    batch_size=optional(COUNT),
    actors=_ACTORS,
    calls=COUNT,
    threads=COUNT,
)
def map_batches(
    dataset: Dataset,
    path: str | Path,
    *,
    function: str = "main",
    columns: Mapping[str, str] | None = None,
    outputs: Sequence[str] | None = None,
    batch_size: int | None = None,
    actors: int | tuple[int, int] = 1,
    calls: int = 1,
    threads: int = 1,
) -> Dataset:
    """`dataset` with the results of the saved model at `path` in place of the columns it reads.

    An input reads the column of its name, or the one that `columns` says; a result is the column
    ``output_0`` and so on, or as `outputs` says.  Other columns stay, such as keys.  Batches have
    `batch_size` rows; by default as many as the largest bounded range of the model's plans, or
    `MOST_ROWS`.  A model of a fixed number of rows may get any number.

    Rows have to be independent: a model that subtracts the mean of a batch has other results for
    other batches, and is refused.  It is tried on made-up inputs, once, by a task of the cluster,
    which takes no processor of it; here only the tables of the file are read.  A model that refuses
    such inputs is taken on trust, with a warning in the log.

    Each of the `actors` is a process that has so many `calls` under way, each of a batch: one on
    `threads` threads, the others on one each, and so it takes ``calls + threads - 1`` processors.
    Calls share what a process has, so that one actor a machine needs the least memory.  Reading and
    writing take other processors, without which Ray waits for ever.

    Actors of one machine share the weights, which stay in the file: it has to be at `path` on every
    machine that runs actors, and is compared with the caller's by its SHA-256.  Batches are read
    where Ray has put them, without a copy; Ray limits what is under way, shows progress, and gives
    the batches of a dead actor to another.

    Raises what `Model` raises, and `RunError` for a model without a batch dimension or with rows
    that depend on each other, for columns that are not there, and for a result whose name a column
    has; where the columns of `dataset` are not known yet, its first batch fails.  Rows of other
    dtypes or shapes fail in their actor, with the sentence of `Model`.
    """
    require_ray("map_batches")
    path = Path(path).absolute()
    model = signature(path, function, outputs)
    each = rows_per_call(model)
    read = _read(model.inputs, columns or {})
    names = dataset.columns(fetch_if_missing=False)  # nothing runs to know them
    if names is not None:
        _check_columns(names, read, model.outputs)
    least, most = actors if isinstance(actors, tuple) else (actors, actors)
    with path.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    if each != 1:
        _check_independence(str(path), function, outputs and tuple(outputs), digest)
    how = {"outputs": outputs, "num_threads": threads, "digest": digest}
    pool = ray_module("ray.data").ActorPoolStrategy(
        min_size=least,
        max_size=most,
        max_concurrent_calls_per_actor=calls,
        enable_true_multi_threading=True,
    )
    return dataset.map_batches(
        _Actor,
        fn_constructor_args=(str(path), function, read, how),
        batch_size=batch_size or (model.bounds[-1] if model.bounds else MOST_ROWS),
        batch_format="numpy",
        zero_copy_batch=True,
        compute=pool,
        num_cpus=calls + threads - 1,
    )


class _Actor:
    """What an actor keeps: the model; it is called with each batch, columns by name."""

    def __init__(
        self, path: str, function: str, read: Mapping[str, str], how: Mapping[str, Any]
    ) -> None:
        from relax_egraph.inference.model import Model  # LLVM, which the caller does without

        self._model = Model(path, function, **how)
        self._read = read

    def __call__(self, batch: Arrays) -> dict[str, Array]:
        _check_columns([*batch], self._read, self._model.outputs)
        inputs = {name: _stacked(column, batch[column]) for name, column in self._read.items()}
        others = set(batch) - set(self._read.values())
        kept = {name: batch[name] for name in batch if name in others}
        return {**kept, **through(self._model, inputs)}


@cache
def _check_independence(
    path: str, function: str, outputs: tuple[str, ...] | None, digest: str
) -> None:
    """Raise `RunError` if rows depend on each other, and what `Model` raises on another machine."""
    ray = ray_module()

    # A task, as the caller may be of another architecture and small; its process ends with it.
    # No processor, as a job that waits for the caller may have them all.
    tried = ray.remote(num_cpus=0, max_calls=1)(_tried).options(name="relax_egraph rows")
    answer = ray.get(tried.remote(path, function, outputs, digest))
    if isinstance(answer, RelaxEgraphError):
        raise answer
    result, refusal = answer
    if result is not None:
        raise RunError(
            f"model {path}: a row of {result} depends on the other rows of its batch: needs "
            "independent rows, as batches are any rows of the table"
        )
    if refusal:
        LOG.warning("model %s: rows are taken to be independent: %s", path, refusal)


def _tried(
    path: str, function: str, outputs: tuple[str, ...] | None, digest: str
) -> tuple[str | None, str] | RelaxEgraphError:
    """The result whose rows are dependent, or why that is not known; or what `Model` raises."""
    from relax_egraph.inference.independence import dependent_result
    from relax_egraph.inference.model import Model

    try:
        model = Model(path, function, outputs=outputs, num_threads=1, digest=digest)
    except RelaxEgraphError as error:
        return error
    try:
        return dependent_result(model), ""
    except RunError as refusal:
        return None, str(refusal)


def _read(inputs: Sequence[Tensor], columns: Mapping[str, str]) -> dict[str, str]:
    """The column that each of `inputs` reads."""
    known = [tensor.name for tensor in inputs]
    for name in columns:
        if name not in known:
            raise RunError(f"columns: there is no input {name}: needs {', '.join(known)}")
    return {name: columns.get(name, name) for name in known}


def _check_columns(
    names: Sequence[str], read: Mapping[str, str], outputs: Sequence[Tensor]
) -> None:
    for name, column in read.items():
        if column not in names:
            raise RunError(f"input {name} reads column {column}: there are {', '.join(names)}")
    for tensor in outputs:
        if tensor.name in set(names) - set(read.values()):
            raise RunError(f"there is a column {tensor.name}, as a result: name it by outputs=")


def _stacked(name: str, column: Array) -> Array:
    """A column of arrays as one array of them all."""
    if column.dtype != object:
        return column
    rows = [np.asarray(row) for row in column]
    shapes = {row.shape for row in rows}
    if len(shapes) > 1:
        some = " and ".join(map(str, sorted(shapes)[:2]))
        raise RunError(f"column {name} has rows of the shapes {some}: needs one shape")
    return np.stack(rows)
