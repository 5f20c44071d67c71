"""Optimize with damaged rule files: ``python -m tests.support.rule_fuzz 0 1200``.

It is a process of its own, so that its death is seen; it prints each seed to standard error first.
With ``all`` as a further argument it continues after failures, and counts them.
"""

import faulthandler
import json
import resource
import signal
import sys
import traceback
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import relax_egraph as rx
from relax_egraph.egraph.saturation.schedule import Budget
from relax_egraph.errors import RelaxEgraphError
from tests.support.rule_mutations import mutated

PATIENCE = 120
"""The time limit of one file in seconds."""

MEMORY = 6 << 30

PROGRAM = """
@R.function
def main(
    x: R.Tensor(("n", 4), "float32"),
    y: R.Tensor(("n", 4), "float32"),
    w: R.Tensor((4, 4), "float32"),
):
    with R.dataflow():
        lv = R.exp(x)
        lv1 = R.multiply(R.add(lv, y), R.const(2.0, "float32"))
        lv2 = R.matmul(lv1, R.permute_dims(w))
        lv3 = R.sum(R.multiply(lv2, lv2), axis=[1], keepdims=True)
        lv4 = R.nn.softmax(R.divide(lv2, R.sqrt(lv3)), axis=-1)
        gv = R.nn.relu(R.reshape(lv4, R.shape([n, 2, 2])))
        R.output(gv)
    return gv
"""


_BUDGET = Budget(nodes=20_000, seconds=5)


class TooLong(BaseException):
    """A file exceeds its time limit."""


@cache
def _module() -> rx.IRModule:
    return rx.parse(PROGRAM)


def run(seed: int, folder: Path) -> str:
    """The outcome of the damaged rules number `seed`: an error of ours, or a program.

    Every second input is a file, the others are texts.  Other exceptions are raised.
    """
    kind, text = mutated(seed)
    source: str | Path = text
    if seed % 2:
        source = folder / "damaged.egg"
        source.write_text(text, "utf-8")
    signal.alarm(PATIENCE)
    try:
        rx.optimize(_module(), rules=[source], budget=_BUDGET, time_limit=1)
    except RelaxEgraphError as error:
        return f"{kind}: {type(error).__name__}"
    except OSError:
        if isinstance(source, Path) or not source.endswith(".egg"):
            raise
        return f"{kind}: no such file"
    finally:
        signal.alarm(0)
    return f"{kind}: a program"


def _too_long(*_: object) -> NoReturn:
    raise TooLong


def main() -> None:
    """Run the range of seeds on the command line; print the counts as JSON."""
    first, last = map(int, sys.argv[1:3])
    goes_on = sys.argv[3:] == ["all"]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _too_long)
    faulthandler.enable()
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
                counts[f"raised {type(error).__name__}"] += 1
                traceback.print_exc()
    print(json.dumps(dict(sorted(counts.items())), indent=1))


if __name__ == "__main__":
    main()
