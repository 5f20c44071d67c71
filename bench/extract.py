"""``python -m bench.extract FOLDER``: extraction of e-graphs of other tools, to proven optima.

For each ``*.json`` under the folder: the cost and the proven bound, the costs of a greedy
extraction and of one by tree cost, and seconds of processor time on one core.  Costs are compared
with those in ``bench/extract_reference.json``; new files are added to it.
"""

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from relax_egraph.extract import PlainExtraction, SerializedEGraph, extract_egraph, read_egraph

REFERENCE = Path(__file__).with_name("extract_reference.json")
TIME_LIMIT = 120.0
TOLERANCE = 1e-6
"""The relative difference allowed from the reference."""

MOST_SECONDS = 30.0
"""The limit of processor time for a file."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The record of one file; `seconds` are of processor time."""

    cost: float
    bound: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One e-graph by all methods."""

    name: str
    seconds: float
    best: PlainExtraction
    greedy: float
    trees: float

    @property
    def entry(self) -> Entry:
        """Its record."""
        return Entry(self.best.cost, self.best.bound, round(self.seconds, 3))

    def faults(self, reference: Mapping[str, Entry]) -> list[str]:
        """The defects of the results."""
        faults: list[str] = []
        if self.best.status != "optimal":
            faults.append(f"{self.name}: {self.best.status}")
        if self.seconds > MOST_SECONDS:
            faults.append(f"{self.name}: {self.seconds:.1f} s, more than {MOST_SECONDS:.0f}")
        known = reference.get(self.name)
        if known is not None and abs(self.best.cost - known.cost) > TOLERANCE * known.cost:
            faults.append(f"{self.name}: costs {self.best.cost}, and {known.cost} in the reference")
        return faults


def measured(name: str, egraph: SerializedEGraph) -> Measured:
    """Extract one e-graph."""
    start = time.process_time()
    best = extract_egraph(egraph, time_limit=TIME_LIMIT)
    seconds = time.process_time() - start
    others = (extract_egraph(egraph, method=method).cost for method in ("greedy-dag", "tree"))
    return Measured(name, seconds, best, *others)


def table_of(results: list[Measured]) -> Table:
    """A row for each file; the other methods by their cost beyond the optimum."""
    columns = ("nodes", "classes", "cost", "bound", "status", "greedy", "trees", "s")
    table = Table(title="extraction", title_justify="left")
    table.add_column("e-graph", no_wrap=True, max_width=48)
    for column in columns:
        table.add_column(column, no_wrap=True)
    for r in results:
        beyond = (_beyond(c, r.best.cost) for c in (r.greedy, r.trees))
        numbers = (f"{r.best.cost:.6g}", f"{r.best.bound:.6g}", r.best.status)
        counts = map(str, (r.best.nodes, r.best.classes))
        table.add_row(r.name, *counts, *numbers, *beyond, f"{r.seconds:.2f}")
    return table


def _beyond(cost: float, best: float) -> str:
    return f"+{100 * (cost - best) / best:.1f} %" if best > 0 else f"{cost:g}"


def read_reference() -> dict[str, Entry]:
    """The entries by name; empty if there is no reference yet."""
    if not REFERENCE.exists():
        return {}
    return {name: Entry(**e) for name, e in json.loads(REFERENCE.read_text("utf-8")).items()}


def write_reference(entries: Mapping[str, Entry]) -> None:
    """Write the entries by name, one on each line."""
    lines = (f"  {json.dumps(n)}: {json.dumps(asdict(e))}" for n, e in sorted(entries.items()))
    REFERENCE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def main() -> None:
    """Extract all e-graphs of the folder; the exit status is 1 if one has a defect."""
    if len(sys.argv) != 2 or not (folder := Path(sys.argv[1])).is_dir():
        raise SystemExit(f"{__doc__}\nneeds a folder")
    files = sorted(folder.rglob("*.json"))
    results = [measured(f.relative_to(folder).as_posix(), read_egraph(f)) for f in files]
    reference = read_reference()
    Console(width=132).print(table_of(results))
    if faults := [fault for result in results for fault in result.faults(reference)]:
        raise SystemExit("\n".join(faults))
    write_reference({r.name: r.entry for r in results} | reference)


if __name__ == "__main__":
    main()
