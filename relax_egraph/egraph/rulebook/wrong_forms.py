"""Error recovery in rule files: every wrong form is reported, consequential errors are not."""

import re

from relax_egraph.egraph.rulebook.forms import DECLARATIONS, Form, Source
from relax_egraph.egraph.rulebook.reader import Unread, is_command, is_start
from relax_egraph.egraph.rulebook.scope import Scope
from relax_egraph.errors import RuleError

_DECLARED = re.compile(rf"\((?:{'|'.join(DECLARATIONS)})\s+([^\s()\"]+)")
_VARIANT = re.compile(r"\(([^\s()\"]+)")
_NAME = re.compile(r"[^\s()\"]+")
_NAMED = re.compile(r':name\s+"([^"\n]+)"')

MOST = 100
"""The most errors that are reported for one file; reading stops after them."""


class WrongForms:
    """The errors of the forms of `source`, in order.

    Two kinds of forms are skipped: text after a wrong form that does not look like the start of the
    next one, and forms that use a name that a wrong form declares.
    """

    def __init__(self, source: Source, scope: Scope) -> None:
        self._source, self._scope = source, scope
        self._errors: list[RuleError] = []
        self._lost: set[str] = set()
        self._last: int | None = None

    def explain(self, item: Form | Unread) -> bool:
        """Whether to skip `item`, as its errors would follow from errors of other forms."""
        if self._last is not None and not self._starts(item.start, self._last):
            return True
        self._last = None
        if isinstance(item, Unread) or not self._lost:
            return False
        text = self._text(item)
        if self._lost.isdisjoint(_NAME.findall(text)):
            return False
        self._lose(text)
        return True

    def add(self, item: Form | Unread, error: RuleError) -> bool:
        """Record `error` of `item`, and its further errors; whether reading goes on."""
        self._errors += [error.with_others(()), *error.others]
        if len(self._errors) >= MOST:
            del self._errors[MOST - 1 :]
            message = f"this is error {MOST}: what follows is not read"
            self._errors.append(self._source.error(error.span, message))
            return False
        self._last = item.start
        text = self._text(item)
        self._lose(text)
        for name in _NAMED.findall(text):
            self._scope.rules.setdefault(name, self._source.span(item.start))
        return True

    def raise_all(self) -> None:
        """Raise the errors as one `RuleError`, if there are any."""
        if self._errors:
            first, *others = self._errors
            raise first.with_others(others)  # a copy, which no frame of its traceback holds

    def _starts(self, start: int, before: int) -> bool:
        return is_command(self._source, start) or is_start(self._source, start, before)

    def _text(self, item: Form | Unread) -> str:
        return self._source.text[item.start : item.end]

    def _lose(self, text: str) -> None:
        """Record the names that the form `text` declares as lost."""
        if declared := _DECLARED.match(text):
            self._lost.add(declared[1])
            variants = _VARIANT.findall(text, 1) if text.startswith("(datatype") else ()
            self._lost.update(variants)
