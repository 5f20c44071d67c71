"""The verdicts with the seeds in the arguments, as JSON: ``PROCESSES SEED... -- RULE...``."""

import json
import sys
from functools import partial

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.verify.check import Check, check_seeds
from relax_egraph.workers.pool import Pool


def main(processes: int, seeds: list[int], names: list[str]) -> None:
    book = RuleBook.default((), fast_math=True, bounded=True)
    executor = partial(Pool, processes) if processes > 1 else None
    found = check_seeds(Check(book, names, trials=1, executor=executor), seeds)
    verdicts = {seed: [v.as_dict() for v in found[seed]] for seed in sorted(found)}
    print(json.dumps(verdicts, indent=1))


if __name__ == "__main__":
    at = sys.argv.index("--")
    main(int(sys.argv[1]), list(map(int, sys.argv[2:at])), sys.argv[at + 1 :])
