"""The text of a rule in its file, and the text with another premise or float class."""

import re
from dataclasses import dataclass

from relax_egraph import rules
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Source, premises_in
from relax_egraph.egraph.rulebook.rule import FloatClass, Rule

_WIDTH = 100
_STATED = re.compile(r"^;\s*float: \w+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule of the file `source`; the comment above it begins at offset `start`."""

    rule: Rule
    source: Source
    start: int

    @property
    def text(self) -> str:
        """The comment and the rule."""
        return self.source.text[self.start : self.rule.form.end]

    @property
    def line(self) -> int:
        """The line of the file where the comment begins."""
        return self.source.span(self.start).line

    @property
    def conclusion(self) -> tuple[int, int]:
        """Line and column of the right side, or of the first action that adds a fact."""
        conclusion, (direction, *_) = self.rule.form.items[2], self.rule.directions
        if actions := direction.actions:
            conclusion = next((a for a in actions if a.head in ("union", "set")), actions[0])
        span = self.source.span(conclusion.start)
        return span.line, span.column

    def with_premise(self, premise: str) -> str:
        """The text with `premise`, one or several, after the premises of the rule."""
        premises = premises_in(self.rule.form)
        if premises is not None:
            end = premises.end - 1 - self.start
            before, after = self.text[:end].rpartition("\n")[2], self.text[end:].partition("\n")[0]
            short = len(before) + 1 + len(premise) + len(after) <= _WIDTH
            column = self.source.span(premises.start).column
            space = " " if short else "\n" + " " * column
            return self._inserted(end, f"{space if premises.items else ''}{premise}")
        end = self.rule.form.items[2].end - self.start
        space = "\n  " if self.text[end : end + 1] == "\n" else " "
        return self._inserted(end, f"{space}:when ({premise})")

    def with_class(self, float_class: FloatClass) -> str:
        """The text with a comment that states `float_class`."""
        stated = f"; float: {float_class}"
        start = self.rule.form.start - self.start
        above, rule = self.text[:start], self.text[start:]
        if _STATED.search(above):
            return _STATED.sub(stated, above) + rule
        return f"{above}{stated}\n{rule}"

    def _inserted(self, offset: int, text: str) -> str:
        return self.text[:offset] + text + self.text[offset:]


def rule_text(book: RuleBook, rule: Rule) -> RuleText:
    """The text of `rule`, a rule of `book`."""
    of_book = (Source(f"rules/{f}.egg", rules.text(f)) for f in (*rules.FACTS, *book.families))
    source = next(s for s in (*book.user, *of_book) if s.name == rule.span.file)
    first = rule.span.line - 1 - len(source.comment_above(rule.form))
    return RuleText(rule, source, source.line_start(first))
