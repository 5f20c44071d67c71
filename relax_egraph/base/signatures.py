"""Signatures as ``help`` prints them: types by their names, one parameter a line where it is long.

optimize(
module: IRModule,
rules: Sequence[str | Path | Rules] = (),
*,
time_limit: float | None = None,
) -> IRModule
"""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_WIDEST = 72
"""Characters of a signature that is on one line, without the name of the function."""

_QUALIFIER = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])")
_UNPACKED = re.compile(r"\*<class '(\w+)'>")


class ReadableSignature(inspect.Signature):
    """A signature whose text is for readers; all else of it is as usual."""

    __slots__ = ()

    def __str__(self) -> str:
        parts = list(_parts(self))
        returns = _type(" -> ", self.return_annotation)
        line = f"({', '.join(parts)}){returns}"
        if len(line) <= _WIDEST:
            return line
        return "".join(("(\n", *(f"    {part},\n" for part in parts), f"){returns}"))

    def format(self, **_: Any) -> str:
        """The same text: since Python 3.13 ``help`` asks for it in a width of its own."""
        return str(self)


def readable(function: F) -> F:
    """`function`, of which ``help`` prints the signature for readers."""
    plain = inspect.signature(function)
    signature = ReadableSignature(
        [*plain.parameters.values()], return_annotation=plain.return_annotation
    )
    vars(function)["__signature__"] = signature
    return function


def _parts(signature: inspect.Signature) -> Iterator[str]:
    """The parameters, with the marks behind those by position and before those by keyword."""
    before = None
    for p in signature.parameters.values():
        if before is p.POSITIONAL_ONLY and p.kind is not before:
            yield "/"
        if p.kind is p.KEYWORD_ONLY and before not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
            yield "*"
        before = p.kind
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else f" = {p.default!r}"
        yield f"{stars}{p.name}{_type(': ', p.annotation)}{default}"
    if before is inspect.Parameter.POSITIONAL_ONLY:
        yield "/"


def _type(before: str, annotation: Any) -> str:
    if annotation is inspect.Signature.empty:
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return before + _UNPACKED.sub(r"Unpack[\1]", _QUALIFIER.sub("", text))
