"""A rule as its file has it, and as it would be written otherwise."""

import re
from dataclasses import dataclass

from relax_egraph import rules
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Form, Source
from relax_egraph.egraph.rulebook.loader import FloatClass, RuleInfo
from relax_egraph.egraph.rulebook.reader import read

_OPTION = ":when"
_WIDTH = 100
_STATED = re.compile(r"^;\s*float: \w+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RuleText:
    """The comment above a rule and the rule, which begin at `line` of the file.

    `form` is the rule, placed within `text`.
    """

    line: int
    text: str
    form: Form

    @property
    def made(self) -> tuple[int, int]:
        """Where what the rule makes begins: line and column in its file."""
        right = self.form.items[2]
        if self.form.head == "rule" and isinstance(right, Form) and right.items:
            actions = [a for a in right.items if isinstance(a, Form)]
            right = next((a for a in actions if a.head in ("union", "set")), right.items[0])
        return self.line + right.span.line - 1, right.span.column

    def with_premise(self, premise: str) -> str:
        """The text with `premise`, one or several, after those that the rule has."""
        premises = self._premises()
        if premises is not None:
            end = premises.end - 1
            before, after = self.text[:end].rpartition("\n")[2], self.text[end:].partition("\n")[0]
            short = len(before) + 1 + len(premise) + len(after) <= _WIDTH
            space = " " if short else "\n" + " " * premises.span.column
            return self._inserted(end, f"{space if premises.items else ''}{premise}")
        end = self.form.items[2].end
        space = "\n  " if self.text[end : end + 1] == "\n" else " "
        return self._inserted(end, f"{space}{_OPTION} ({premise})")

    def with_class(self, float_class: FloatClass) -> str:
        """The text with `float_class` as what the rule states."""
        stated = f"; float: {float_class}"
        above, rule = self.text[: self.form.start], self.text[self.form.start :]
        if _STATED.search(above):
            return _STATED.sub(stated, above) + rule
        return f"{above}{stated}\n{rule}"

    def _premises(self) -> Form | None:
        """The list of what must hold of a match, if the rule has one."""
        items = self.form.items
        if self.form.head == "rule":
            return items[1] if isinstance(items[1], Form) else None
        texts = [getattr(item, "text", "") for item in items]
        when = items[texts.index(_OPTION) + 1] if _OPTION in texts[:-1] else None
        return when if isinstance(when, Form) else None

    def _inserted(self, offset: int, text: str) -> str:
        return self.text[:offset] + text + self.text[offset:]


def rule_text(book: RuleBook, rule: RuleInfo) -> RuleText:
    """The text of `rule`, which is one of `book`."""
    of_book = (Source(f"rules/{f}.egg", rules.text(f)) for f in (*rules.FACTS, *book.families))
    source = next(s for s in (*book.user, *of_book) if s.name == rule.span.file)
    found = next(form for form in read(source) if form.span == rule.span)
    above = len(source.comment_above(found))
    lines = source.text[: found.end].split("\n")[found.span.line - 1 - above :]
    text = "\n".join(lines)
    (form,) = read(Source(source.name, text))
    return RuleText(found.span.line - above, text, form)
