"""The lines of a module's text, each with the variable that it defines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from relax_egraph.ir.expr import Binding, Function, If, SeqExpr, Var
from relax_egraph.ir.module import IRModule

_FUNCTION = re.compile(r"    def (\w+)\(")
_DEFINITION = re.compile(r"\s+(?:def )?(\w+)(?:: |\()")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of `function` in a module's text, which defines `variable` under `name`.

    A definition that continues over several lines is one `Line`.
    """

    text: str
    function: str
    variable: Var | None = None
    name: str = ""


def lines_of(module: IRModule) -> tuple[Line, ...]:
    """The lines of ``module.script()``."""
    functions = iter(module.functions.items())
    lines: list[Line] = []
    name, defined = "", _Defined([])
    for text in module.script().splitlines():
        if _FUNCTION.match(text):
            name, function = next(functions)
            known = definitions_in(function) if isinstance(function, Function) else ()
            defined = _Defined(list(known))
            lines.append(Line(text, name))
            params = text.partition("(")[2]
            if "):" in params or ") ->" in params:
                defined.skip(len(function.params) if isinstance(function, Function) else 0)
        elif lines and lines[-1].variable and _continues(lines[-1].text, text):
            lines[-1] = replace(lines[-1], text=f"{lines[-1].text}\n{text}")
        else:
            match = _DEFINITION.match(text)
            variable = defined.next(match[1]) if match else None
            lines.append(Line(text, name, variable, match[1] if match and variable else ""))
    return tuple(lines)


def _continues(definition: str, text: str) -> bool:
    """Whether `text` continues the `definition` before it: it is indented more, or closes it."""
    if definition.lstrip().startswith("def "):
        return False
    deeper = _indent(text) - _indent(definition)
    return deeper > 0 or (deeper == 0 and text.lstrip().startswith(")"))


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def definitions_in(function: Function) -> Iterator[Var]:
    """The variables of `function`, in the order of their definitions in the text."""
    yield from function.params
    for binding in bindings_in(function):
        yield binding.var


def bindings_in(function: Function) -> Iterator[Binding]:
    """The bindings of `function`; an ``if`` comes after the bindings of its branches."""
    yield from _in_sequence(function.body)


def _in_sequence(seq: SeqExpr) -> Iterator[Binding]:
    for block in seq.blocks:
        for binding in block.bindings:
            if isinstance(binding.value, If):
                yield from _in_sequence(binding.value.true_branch)
                yield from _in_sequence(binding.value.false_branch)
            yield binding


class _Defined:
    """Finds the variables of a function by their names in its text, in order.

    The text appends a number to a name that is already in use.
    """

    def __init__(self, variables: list[Var]) -> None:
        self._variables = variables
        self._place = 0

    def skip(self, count: int) -> None:
        """Skip `count` variables."""
        self._place += count

    def next(self, name: str) -> Var | None:
        """The next variable whose name in the text may be `name`."""
        for place in range(self._place, len(self._variables)):
            base = re.sub(r"\W", "_", self._variables[place].name)
            if re.fullmatch(rf"_?{re.escape(base)}\d*", name):
                self._place = place + 1
                return self._variables[place]
        return None
