"""The door to cvc5, which answers questions of z3 a second time where it is installed."""

from functools import lru_cache
from importlib import import_module
from typing import Any

from relax_egraph.prove.questions import Answer


@lru_cache(1)
def cvc5() -> Any | None:
    """The module cvc5, if it is installed."""
    try:
        return import_module("cvc5")
    except ModuleNotFoundError:
        return None


def answer(question: str, steps: int) -> Answer:
    """What cvc5 says of SMT-LIB text, by so many of its steps."""
    library = cvc5()
    assert library is not None
    terms = library.TermManager()
    solver = library.Solver(terms)
    solver.setOption("rlimit-per", str(steps))
    parser = library.InputParser(solver)
    text = f"(set-logic ALL)\n{question}"
    parser.setStringInput(library.InputLanguage.SMT_LIB_2_6, text, "question")
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said += command.invoke(solver, parser.getSymbolManager())
    match said.strip():
        case "unsat":
            return "impossible"
        case "sat":
            return "possible"
        case _:
            return "unknown"
