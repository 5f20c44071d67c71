"""The exceptions this package raises on purpose.

* RelaxEgraphError
  + IllTyped            an operator applied to operands its struct-info rule refuses
  + IllFormed           a module that breaks a law of the IR
  + NotStructurallyEqual  two programs that were asserted to be equal are not
  + TextError           a text that does not read: it has a place, drawn with a caret
    - ScriptError         a program in script form
    - RuleError           a rule file
    - AssumptionError     a condition on symbols
  + ModelError          a foreign model does not read, or has what has no counterpart here
  + OperatorError       an operator of a user is registered wrongly, or is not in force
  + SaturationError     a rule panicked, or united values of different shape
  + ExtractionError     no program can be extracted
  + ProofError          it cannot be shown that an optimized program is equal to its source
  + ReplayError         a step of a proof computes another value
  + NotLowerable        no kernel is written for an operator at these types
  + ExecutableError     a saved executable is damaged, or of another version
  + RunError            a call of the virtual machine got what it cannot take
    - ArgumentError       a kernel was called with arguments of other types than it takes
    - UnknownFunction     a module or an executable has no function of this name
* Interrupted           a KeyboardInterrupt of long work, with what it had found
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any


def nearest(name: str, known: Iterable[str]) -> str:
    """The note ``did you mean …?`` with the known name closest to `name`; empty if none is."""
    close = get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]}?" if close else ""


def known_names(name: str, symbols: Collection[str]) -> str:
    """The note for a `name` that is none of the `symbols`: what these are, and which is near."""
    known = f"symbols are: {', '.join(sorted(symbols)) or 'none'}"
    return "; ".join(filter(None, (known, nearest(name, symbols))))


class RelaxEgraphError(Exception):
    """What every exception of this package derives from."""


class IllTyped(RelaxEgraphError, TypeError):
    """An operator was applied to operands that its struct-info rule refuses."""


class IllFormed(RelaxEgraphError, ValueError):
    """A module breaks a law of the IR; the message lists every breach."""


class NotStructurallyEqual(RelaxEgraphError, AssertionError):
    """Two programs differ; the message says where, and shows both sides."""


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a text: 1-based line and column, and the text's name."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class TextError(RelaxEgraphError, ValueError):
    """A text does not read; says where, quotes the line and points at the column."""

    def __init__(self, span: Span, message: str, source_line: str, note: str = "") -> None:
        self.span = span
        self.message = message
        self.source_line = source_line
        self.note = note
        shown, column = _excerpt(source_line, span.column - 1)
        tail = f"\n{note}" if note else ""
        super().__init__(f"{span}: {message}\n    {shown}\n    {' ' * column}^{tail}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Exceptions are otherwise copied by their message alone."""
        return type(self), (self.span, self.message, self.source_line, self.note)


_WIDE = 200
"""Characters of a line that are quoted; of a longer one, those around the place."""


def _excerpt(line: str, column: int) -> tuple[str, int]:
    """What is shown of `line`, and where in it `column` is, both from 0."""
    if len(line) <= _WIDE:
        return line, column
    start = max(0, min(column - _WIDE // 2, len(line) - _WIDE))
    before, after = "…" * (start > 0), "…" * (start + _WIDE < len(line))
    return f"{before}{line[start : start + _WIDE]}{after}", column - start + len(before)


class ScriptError(TextError):
    """A program in script form does not parse, or is ill-typed."""


class RuleError(TextError):
    """A rule file does not read: its syntax, a name, an arity or a sort is wrong.

    The place is that of the first error of the file; the message has the `others`, too.
    """

    def __init__(
        self,
        span: Span,
        message: str,
        source_line: str,
        note: str = "",
        others: Sequence["RuleError"] = (),
    ) -> None:
        super().__init__(span, message, source_line, note)
        self.others = tuple(others)
        if others:
            count = f"{1 + len(others)} errors in {span.file}"
            self.args = ("\n\n".join((*self.args, *map(str, others), count)),)

    def with_others(self, others: Sequence["RuleError"]) -> "RuleError":
        """The same error, in a file that has `others` behind it."""
        return RuleError(self.span, self.message, self.source_line, self.note, others)

    def __reduce__(self) -> tuple[Any, ...]:
        """Like that of `TextError`."""
        said = (self.span, self.message, self.source_line, self.note)
        return type(self), (*said, self.others)


class AssumptionError(TextError):
    """A condition on symbols does not read, or contradicts another."""


class ModelError(RelaxEgraphError, ValueError):
    """A foreign model does not read, or has nodes without a counterpart; says all of them."""


class OperatorError(RelaxEgraphError, ValueError):
    """A registration of an operator is wrong, or no operator of a name is in force."""


class SaturationError(RelaxEgraphError, RuntimeError):
    """A rule panicked or united values of different shape; the message names it."""


class ExtractionError(RelaxEgraphError, RuntimeError):
    """A needed value has no finite program in the e-graph."""


class ProofError(RelaxEgraphError, AssertionError):
    """No chain of rules leads from a program to the optimized one; says what is not reached."""


class ReplayError(RelaxEgraphError, AssertionError):
    """A proof does not hold: a step computes another value, or is none of the program's.

    `rules` are those that are wrong, the likeliest first; empty where no rule is.
    """

    def __init__(self, message: str, rules: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.rules = rules


class NotLowerable(RelaxEgraphError, NotImplementedError):
    """No kernel is written for an operator at these types."""


class ExecutableError(RelaxEgraphError, ValueError):
    """A saved executable is damaged, truncated, or of a version this one cannot read."""


class RunError(RelaxEgraphError, ValueError):
    """A call of the virtual machine got an argument, or met a value, that it cannot take."""


class ArgumentError(RunError, TypeError):
    """A kernel was called with arguments of other types, or more or fewer, than it takes."""


class UnknownFunction(RunError, KeyError):
    """A module or an executable has no function of this name, or none to call from outside."""

    __str__ = Exception.__str__  # that of a KeyError quotes the message

    @classmethod
    def among(cls, name: object, where: str, known: Iterable[str]) -> "UnknownFunction":
        """No function `name` is `where`: "in the module"; the `known` ones are said."""
        names = list(known)
        there = f"no function {name!r} {where}; there are: {', '.join(names) or 'none'}"
        return cls("; ".join(filter(None, (there, nearest(str(name), names)))))


class Interrupted(KeyboardInterrupt):
    """Long work was interrupted; `done` is what it had found, and `extent` says how much that is.

    Like every ``KeyboardInterrupt`` it passes a handler of ``Exception``.
    """

    def __init__(self, extent: str, done: Any) -> None:
        self.extent = extent
        self.done = done
        super().__init__(f"{extent}; the field `done` of this exception has them")
