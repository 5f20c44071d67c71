"""Imports damaged models: ``python -m tests.onnx_fuzz 0 2000`` prints what became of them.

It is a process of its own, so that its death is seen; before each it says on standard error which.
With ``all`` behind the numbers it goes on after what should not be, and says that at the end.
"""

import faulthandler
import json
import os
import resource
import signal
import sys
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import numpy as np
import onnx
from google.protobuf.message import DecodeError

import relax_egraph as rx
from relax_egraph.errors import ModelError
from tests.onnx_mutations import mutated
from tests.onnx_samples import samples

PATIENCE = 60
"""Seconds of one model."""

MEMORY = 4 << 30
TRIPPED = "do not fit together"
"""What is said of a node whose converter did not foresee what it was given."""


class TooLong(BaseException):
    """A model takes more time than it may."""


def run(seed: int, folder: Path) -> str:
    """What becomes of the damaged model number `seed`: a module, or that it is refused.

    Every other is a file, the others are messages where they parse.  Raises whatever else happens.
    """
    names = list(samples())
    kind, data = mutated(samples()[names[seed % len(names)]], seed)
    path = folder / "model.onnx"
    path.write_bytes(data)
    given: Path | onnx.ModelProto = path
    if seed // len(names) % 2:
        with suppress(DecodeError):
            given = onnx.ModelProto.FromString(data)
    try:
        signal.alarm(PATIENCE)
        try:
            rx.from_onnx(given)
        finally:
            signal.alarm(0)
    except ModelError as error:
        if TRIPPED not in str(error):
            return f"{kind}: refused"
        print(f"{seed} {error}", file=sys.stderr)
        return f"{kind}: refused, tripped over"
    return f"{kind}: a module"


def _too_long(*_: object) -> NoReturn:
    raise TooLong


def main() -> None:
    """Run the range of seeds that the command line says; print the counts as JSON."""
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
