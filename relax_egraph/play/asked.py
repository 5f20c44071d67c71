"""What a tab of the page asks: a program, rules, and a question about them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy.typing as npt

import relax_egraph as rx
from relax_egraph.authoring.questions import IMPORTERS
from relax_egraph.egraph.engine import Budget
from relax_egraph.rules import FAMILIES, Rules
from relax_egraph.script.printer import print_with_constants

Kind: TypeAlias = Literal["result", "steps", "check", "prove", "why-not", "code"]
"""``result`` is the optimized program with its kernels, ``steps`` the growth of the e-graph."""

Stage: TypeAlias = Literal["tir", "llvm", "asm"]

_NEEDED = ("fusion",)
"""The families without which operators are not joined to kernels."""


_BUDGET = Budget(nodes=20_000, seconds=4.0)
"""The bounds on saturation, which it reports; the limits of the worker are beyond them."""


class Unreadable(ValueError):
    """A request of a form that the page does not send."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a tab about `program` and `rules`, which are texts.

    With `alone`, the rules run without those of the book.  `rule` is the rule that is asked about,
    `at` the value, `stage` the kind of code.  `file` is the name of the rule file, and `model` the
    file whose constants the program refers to; both are known to the server only.
    """

    kind: Kind
    program: str
    rules: str
    alone: bool = False
    rule: str = ""
    at: str = ""
    stage: Stage = "tir"
    file: str = "rules.egg"
    model: str = ""

    @property
    def session(self) -> "Asked":
        """The same program and rules, without a question about them."""
        return Asked(
            "result", self.program, self.rules, self.alone, file=self.file, model=self.model
        )

    @property
    def options(self) -> dict[str, Any]:
        """Keywords of `rx.explain`: the process is a worker with limits, so rules run in it."""
        return {
            "rules": [Rules(((self.file, self.rules),))] if self.rules.strip() else [],
            "without": [f for f in FAMILIES if f not in _NEEDED] if self.alone else [],
            "budget": _BUDGET,
            "isolate": False,
        }

    def module(self) -> "rx.IRModule":
        """The program; raises `ScriptError`."""
        constants = script_of(self.model)[1] if self.model else ()
        return rx.parse(self.program, filename="program", constants=constants)


def asked(data: object, file: str, model: str) -> Asked:
    """The question in the JSON of a request; raises `Unreadable`."""
    if not isinstance(data, dict):
        raise Unreadable("a request is an object")
    values = cast(Mapping[str, object], data)
    known = {f.name: f.type for f in fields(Asked) if f.name not in ("file", "model")}
    chosen = {name: values[name] for name in known if name in values}
    for name, value in chosen.items():
        if not isinstance(value, bool if name == "alone" else str):
            raise Unreadable(f"{name} is of another type")
    for name, allowed in (("kind", get_args(Kind)), ("stage", get_args(Stage))):
        if chosen.get(name, allowed[0]) not in allowed:
            raise Unreadable(f"{name} is one of {', '.join(allowed)}")
    if missing := {"kind", "program", "rules"} - set(chosen):
        raise Unreadable(f"needs {', '.join(sorted(missing))}")
    return Asked(**cast(dict[str, Any], chosen), file=file, model=model)


@cache
def script_of(model: str) -> tuple[str, tuple[npt.NDArray[Any], ...]]:
    """The text of a model in a file, and the constants that the text refers to by number.

    That of a program in script form is as it is written, with its comments.
    """
    path = Path(model)
    module = IMPORTERS.get(path.suffix, rx.load_module)(path)
    text, constants = print_with_constants(module)
    if path.suffix not in IMPORTERS and not constants:
        text = path.read_text("utf-8")
    return text, tuple(constants)
