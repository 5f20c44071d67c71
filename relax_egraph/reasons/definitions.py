"""The text of a module, line by line, with the variable that each line defines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from relax_egraph.ir.expr import Binding, Function, If, SeqExpr, Var
from relax_egraph.ir.module import IRModule

_FUNCTION = re.compile(r"    def (\w+)\(")
_DEFINITION = re.compile(r"\s+(?:def )?(\w+)(?:: |\()")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of `function` in a module's text; `variable` is what it defines, named `name`.

    A definition that goes on over several lines is one.
    """

    text: str
    function: str
    variable: Var | None = None
    name: str = ""


def lines_of(module: IRModule) -> tuple[Line, ...]:
    """The text of `module`, as `IRModule.script` writes it."""
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
        elif lines and lines[-1].variable and _goes_on(lines[-1].text, text):
            lines[-1] = replace(lines[-1], text=f"{lines[-1].text}\n{text}")
        else:
            found = _DEFINITION.match(text)
            variable = defined.next(found[1]) if found else None
            lines.append(Line(text, name, variable, found[1] if found and variable else ""))
    return tuple(lines)


def _goes_on(definition: str, text: str) -> bool:
    """Whether `text` belongs to the `definition` before it: it is further in, or closes it."""
    if definition.lstrip().startswith("def "):
        return False
    deeper = _indent(text) - _indent(definition)
    return deeper > 0 or (deeper == 0 and text.lstrip().startswith(")"))


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def definitions_in(function: Function) -> Iterator[Var]:
    """The variables of `function`, in the order in which text defines them."""
    yield from function.params
    for binding in bindings_in(function):
        yield binding.var


def bindings_in(function: Function) -> Iterator[Binding]:
    """The bindings of `function`, each after those in the branches that it has."""
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

    A name that is in use twice has a number in the text.
    """

    def __init__(self, variables: list[Var]) -> None:
        self._variables = variables
        self._place = 0

    def skip(self, count: int) -> None:
        """Go past `count` variables."""
        self._place += count

    def next(self, name: str) -> Var | None:
        """The next variable that may be called `name` in the text."""
        for place in range(self._place, len(self._variables)):
            base = re.sub(r"\W", "_", self._variables[place].name)
            if re.fullmatch(rf"_?{re.escape(base)}\d*", name):
                self._place = place + 1
                return self._variables[place]
        return None
