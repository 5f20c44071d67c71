"""Examples of jax, beside jax; run from the top of the repository.

``python -m bench.jax [WORDS]``: those whose names have one of the words.
"""

import argparse

from bench.jax import functions as functions
from bench.jax.agreement import Outcome, outcomes
from bench.jax.example import EXAMPLES


def main() -> int:
    """Print each failure, and how many agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    words = parser.parse_args().words
    each: list[Outcome] = []
    for example in EXAMPLES:
        if words and not any(word in example.name for word in words):
            continue
        for outcome in outcomes(example):
            each.append(outcome)
            if outcome.reason or words:
                print(f"{outcome.name} ({outcome.kind}): {outcome.reason}", flush=True)
    for kind in ("static", "symbolic"):
        some = [outcome for outcome in each if outcome.kind == kind]
        print(f"{sum(not o.reason for o in some)} of {len(some)} examples agree ({kind})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
