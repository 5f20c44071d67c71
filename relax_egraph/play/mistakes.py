"""Mistakes in the texts of the page, as places with messages."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from relax_egraph.authoring.diagnostics import diagnosis
from relax_egraph.authoring.names import names_in
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.errors import RelaxEgraphError, TextError
from relax_egraph.play.asked import Asked

Text: TypeAlias = Literal["program", "rules"]

_WORD = re.compile(r"[\w.]+|\S|$")


@dataclass(frozen=True, slots=True)
class Mistake:
    """An error in a text of the page, at the characters from `start` to `end`.

    `better` is what may stand there instead.
    """

    text: Text
    line: int
    start: int
    end: int
    message: str
    better: str = ""


def mistakes(asked: Asked) -> list[Mistake]:
    """The errors of the program and of the rules, as far as both are read by themselves."""
    return [*_in_program(asked), *_in_rules(asked)]


def _in_program(asked: Asked) -> Iterable[Mistake]:
    try:
        asked.module()
    except TextError as error:
        yield _at("program", asked.program, error)
    except (RelaxEgraphError, ValueError) as error:
        yield Mistake("program", 1, 0, len(asked.program), str(error))


def _in_rules(asked: Asked) -> Iterable[Mistake]:
    source = Source(asked.file, asked.rules)
    for problem in diagnosis(names_in(source)).problems:
        line = asked.rules.count("\n", 0, problem.start) + 1
        yield Mistake("rules", line, problem.start, problem.end, problem.message, problem.better)


def of_run(asked: Asked, problem: Exception) -> Mistake:
    """The error of a run: at the rule that it names, or else about the whole program."""
    message = str(problem)
    place = re.search(rf"{re.escape(asked.file)}:(\d+):(\d+)", message)
    if place is None:
        return Mistake("program", 1, 0, 0, message)
    line, column = int(place[1]), int(place[2])
    return _mistake("rules", asked.rules, line, column, message)


def _at(text: Text, whole: str, error: TextError) -> Mistake:
    message = f"{error.message}\n{error.note}" if error.note else error.message
    return _mistake(text, whole, error.span.line, error.span.column, message)


def _mistake(text: Text, whole: str, line: int, column: int, message: str) -> Mistake:
    """A mistake at the word at `line` and `column`, both from 1."""
    lines = whole.splitlines(keepends=True)[: line - 1]
    start = min(sum(map(len, lines)) + column - 1, len(whole))
    word = _WORD.match(whole, start)
    end = max(word.end() if word else start, start + 1)
    return Mistake(text, line, start, end, message)
