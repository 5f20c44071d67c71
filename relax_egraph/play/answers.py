"""Answers to what a tab asks, as plain data.  They are computed in a worker process."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import relax_egraph as rx
from relax_egraph.authoring.names import names_in
from relax_egraph.authoring.questions import Answer, Question
from relax_egraph.authoring.questions import answer as answer_about_rule
from relax_egraph.build import assembly_text, llvm_text
from relax_egraph.egraph.rulebook.forms import RULES, Source
from relax_egraph.errors import RelaxEgraphError
from relax_egraph.play.asked import Asked, Kind
from relax_egraph.play.mistakes import mistakes, of_run
from relax_egraph.play.picture import pictures
from relax_egraph.reasons.explain import Reasons

MOST_TEXT = 400_000
"""The most characters of a text in an answer."""


def answer(asked: Asked) -> dict[str, Any]:
    """The answer: ``{"mistakes": […]}`` where a text does not read, or the run fails."""
    if asked.kind in ("check", "prove"):
        return _about_rule(asked)
    if wrong := mistakes(asked):
        return {"mistakes": [asdict(mistake) for mistake in wrong]}
    try:
        return {"mistakes": [], **_ANSWERS[asked.kind](asked)}
    except (RelaxEgraphError, ValueError, ImportError) as problem:
        return {"mistakes": [asdict(of_run(asked, problem))]}


def begin() -> None:
    """Read the rule book, and run it, before the time of the first question begins."""
    answer(Asked("steps", _SMALLEST, '(rewrite (R.negative (R.negative x)) x :name "begin")'))


_SMALLEST = """
@R.function
def main(x: R.Tensor(("n",), "float32")):
    with R.dataflow():
        y = R.negative(R.negative(x))
        R.output(y)
    return y
"""


@lru_cache(2)
def _reasons(session: Asked) -> Reasons:
    return rx.explain(session.module(), **session.options)


def _about_rule(asked: Asked) -> dict[str, Any]:
    kind = "prove" if asked.kind == "prove" else "check"
    names = names_in(Source(asked.file, asked.rules)).every
    if all(name.text != asked.rule for name in names if name.kind == "rule"):
        found = Answer("no answer", f"there is no rule named {asked.rule!r}")
    else:
        found = answer_about_rule(Question(kind, asked.rule, asked.file, asked.rules))
    return {"mistakes": [], **asdict(found)}


def _result(asked: Asked) -> dict[str, Any]:
    reasons = _reasons(asked.session)
    figures = reasons.figures(quick=True)
    own = [n for n in names_in(Source(asked.file, asked.rules)).every if n.kind == "rule"]
    named = (
        "cost_before",
        "cost",
        "bound",
        "gap",
        "assumed",
        "kernels",
        "rules",
        "before",
        "after",
    )
    return {
        **{name: figures[name] for name in named},
        "own": [
            {"rule": n.text, "start": n.form.start, "end": n.form.end}
            for n in own
            if n.form.head in RULES
        ],
        "stops": [{"function": r.function, "stop": r.stop} for r in reasons.regions],
        "opaque": figures["opaque"],
    }


def _steps(asked: Asked) -> dict[str, Any]:
    reasons = _reasons(asked.session)
    return {"egraphs": pictures(reasons)}


def _why_not(asked: Asked) -> dict[str, Any]:
    options = asked.session.options
    found = rx.why_not(asked.rule, asked.module(), asked.at or None, **options)
    return {"text": str(found)}


def _code(asked: Asked) -> dict[str, Any]:
    module = _reasons(asked.session).module
    match asked.stage:
        case "tir":
            text = rx.lower_module(module).script()
        case "llvm":
            text = llvm_text(module)
        case "asm":
            text = assembly_text(module)
    return {"text": text[:MOST_TEXT], "cut": len(text) > MOST_TEXT}


_ANSWERS: Mapping[Kind, Callable[[Asked], dict[str, Any]]] = {
    "result": _result,
    "steps": _steps,
    "why-not": _why_not,
    "code": _code,
}
