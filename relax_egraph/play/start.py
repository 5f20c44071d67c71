"""What the page begins with: the texts of the command, the examples, the vocabulary."""

from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from relax_egraph.egraph.rulebook.forms import DECLARATIONS, MEANING, RULES
from relax_egraph.egraph.rulebook.scope import PRIMITIVES, vocabulary
from relax_egraph.play.asked import script_of
from relax_egraph.play.examples import examples


@dataclass(frozen=True, slots=True)
class Start:
    """The texts of the command: none are those of the first example.

    `file` is the name of the rule file, and `model` the path of a model, or empty.
    """

    program: str = ""
    rules: str = ""
    file: str = "rules.egg"
    model: str = ""


def start_of(rules: Path | None, model: Path | None) -> Start:
    """The texts of a rule file and of a model; a rule file alone is shown with an example."""
    first = examples()[0]
    program = script_of(str(model.resolve()))[0] if model else first.program
    if rules is None:
        return Start(program, "" if model else first.rules, model=str(model or ""))
    path = str(model.resolve()) if model else ""
    return Start(program, rules.read_text("utf-8"), rules.name, path)


def start_data(start: Start) -> dict[str, Any]:
    """The data of the page."""
    return {
        "program": start.program,
        "rules": start.rules,
        "file": start.file,
        "examples": [asdict(example) for example in examples()],
        "vocabulary": _vocabulary(),
        "usages": _usages(),
    }


@cache
def _vocabulary() -> dict[str, list[str]]:
    """Names by how they are highlighted."""
    every = vocabulary()
    return {
        "operator": sorted(d.name for d in every if d.kind == "constructor"),
        "fact": sorted(d.name for d in every if d.kind != "constructor"),
        "keyword": sorted({*RULES, *DECLARATIONS, MEANING}),
        "primitive": sorted(PRIMITIVES),
    }


@cache
def _usages() -> dict[str, dict[str, Any]]:
    """By name of the vocabulary, its arguments by name, and the sort of its result."""
    return {
        d.name: {"args": [param.name for param in d.params], "result": d.result}
        for d in sorted(vocabulary(), key=lambda d: d.name)
    }
