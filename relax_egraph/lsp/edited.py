"""A rule file as it is in an editor, with what is known of this text."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from relax_egraph.authoring.diagnostics import Diagnosis, diagnosis
from relax_egraph.authoring.names import Name, Names, names_in
from relax_egraph.authoring.questions import Kind, Question
from relax_egraph.egraph.rulebook.forms import RULES, Source
from relax_egraph.lsp.book import family_of


@dataclass(frozen=True)
class Edited:
    """A version of the text of a file; `path` is `None` for one that was never saved."""

    source: Source
    path: Path | None = None

    @cached_property
    def family(self) -> str:
        """The family of the book whose file it is; empty for others."""
        return family_of(self.path)

    @cached_property
    def names(self) -> Names:
        """The names in it."""
        return names_in(self.source)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """What the loader says."""
        folder = self.path.parent if self.path else Path()
        return diagnosis(self.names, self.family, folder)

    @property
    def rules(self) -> list[Name]:
        """The names of its rules, in order; rules without a name are left out."""
        return [n for n in self.names.every if n.kind == "rule" and n.form.head in RULES]

    def question(self, kind: Kind, rule: str, folders: tuple[str, ...]) -> Question:
        """A question about one of its rules, perhaps in models in `folders`."""
        source = self.source
        searched = folders if kind == "fires" else ()
        return Question(kind, rule, source.name, source.text, self.family, searched)
