"""Import and run damaged models: ``python -m tests.support.onnx_fuzz 0 2000`` prints each outcome.

It is a process of its own, so that its death is seen; it prints each seed to standard error first.
With ``all`` as a further argument it continues after failures, and reports them at the end.
"""

import faulthandler
import json
import math
import os
import resource
import signal
import sys
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import numpy as np
import onnx
from google.protobuf.message import DecodeError

import relax_egraph as rx
from relax_egraph.errors import ModelError, RelaxEgraphError
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import converted, is_integer
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Function
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo
from tests.support.onnx_mutations import mutated
from tests.support.onnx_samples import samples

PATIENCE = 60
"""The time limit of one model in seconds."""

RUN = 10
"""The time limit of a run in seconds: a loop may be endless."""

MEMORY = 4 << 30
LARGE = 1_000_000
"""The maximal elements of an input."""

EVERY = 8
"""The interval of modules that are compiled."""

TRIPPED = "do not fit together"
"""The message for a node whose converter did not expect its operands."""


class TooLong(BaseException):
    """A model exceeds its time limit."""


def run(seed: int, folder: Path) -> str:
    """The outcome of the damaged model number `seed`: a module, or its refusal.

    Every second model is a file, the others are messages if they parse.  Other exceptions are
    raised.
    """
    names = list(samples())
    kind, data = mutated(samples()[names[seed % len(names)]], seed)
    path = folder / "model.onnx"
    path.write_bytes(data)
    source: Path | onnx.ModelProto = path
    if seed // len(names) % 2:
        with suppress(DecodeError):
            source = onnx.ModelProto.FromString(data)
    try:
        signal.alarm(PATIENCE)
        try:
            module = rx.from_onnx(source)
        finally:
            signal.alarm(0)
    except ModelError as error:
        if TRIPPED not in str(error):
            return f"{kind}: refused"
        print(f"{seed} {error}", file=sys.stderr)
        return f"{kind}: refused, tripped over"
    signal.alarm(RUN)
    try:
        return f"{kind}: a module that {_ran(module, seed)}"
    except TooLong:
        return f"{kind}: a module that runs for long"
    finally:
        signal.alarm(0)


def _ran(module: rx.IRModule, seed: int) -> str:
    """The outcome of a call: by the reference, and for some modules by machine code."""
    rng = np.random.default_rng(seed)
    main = module["main"]
    assert isinstance(main, Function)
    inputs = [_input(p.struct_info, rng) for p in main.params]
    if any(x is None for x in inputs):
        return "takes what is not drawn"
    ends: list[str] = []
    machine_code = seed % EVERY == 0
    for compiled in (False, True)[: 1 + machine_code]:
        try:
            if compiled:
                rx.VirtualMachine(rx.build(module), num_threads=1)["main"](*inputs)
            else:
                evaluate(module, "main", *inputs)
            ends.append("runs")
        except RelaxEgraphError:
            ends.append("is refused when it runs")
    return ends[-1]


def _input(info: StructInfo | None, rng: np.random.Generator) -> Any:
    """An array for a parameter, with extent 2 along symbols; integers may be invalid indices."""
    if not isinstance(info, TensorStructInfo) or info.dims is None or info.dtype is None:
        return None
    shape = [dims.evaluate(d, dict.fromkeys(dims.symbols(d), 2)) for d in info.dims]
    if not 0 <= math.prod(shape) < LARGE:
        return None
    if not is_integer(info.dtype):
        return rng.standard_normal(shape).astype(info.dtype)
    return converted(rng.choice([-(2.0**62), -2.0, -1.0, 0.0, 1.0, 2.0, 70.0], shape), info.dtype)


def _too_long(*_: object) -> NoReturn:
    raise TooLong


def main() -> None:
    """Run the range of seeds on the command line; print the counts as JSON."""
    first, last = map(int, sys.argv[1:3])
    goes_on = sys.argv[3:] == ["all"]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _too_long)
    faulthandler.enable()
    np.seterr(all="ignore")
    counts: Counter[str] = Counter()
    with TemporaryDirectory() as folder:
        for seed in range(first, last):
            print(seed, file=sys.stderr, flush=True)
            faulthandler.dump_traceback_later(2 * PATIENCE, exit=True)
            try:
                counts[run(seed, Path(folder))] += 1
            except (Exception, TooLong) as error:
                if not goes_on:
                    raise
                where = traceback.extract_tb(error.__traceback__)
                own = [f for f in where if "relax_egraph" in f.filename] or where
                place = f"{os.path.basename(own[-1].filename)}:{own[-1].lineno}"
                counts[f"{type(error).__name__} at {place}"] += 1
                print(f"{seed} {type(error).__name__} {place}: {str(error)[:200]}", file=sys.stderr)
    print(json.dumps(dict(sorted(counts.items())), indent=1))


if __name__ == "__main__":
    main()
