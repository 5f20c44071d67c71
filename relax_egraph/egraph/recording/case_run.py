"""Cases of file tests: forms that run one by one, over the vocabulary and rules of a book.

Commands that print, or that read or write files, are refused.
"""

import re
from collections import Counter
from collections.abc import Container, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from relax_egraph.egraph.bindings import EggSmolError, EGraph, RunScheduleOutput
from relax_egraph.egraph.encoding.prepared import prepared
from relax_egraph.egraph.readback.held import Held
from relax_egraph.egraph.readback.tables import Tables
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Atom, Form, Source, Tree, atoms, is_literal, written
from relax_egraph.egraph.rulebook.reader import read
from relax_egraph.egraph.rulebook.refusals import explained
from relax_egraph.egraph.rulebook.scope import DEMANDS, near
from relax_egraph.egraph.saturation.answers import asked
from relax_egraph.egraph.saturation.deduction import add_values
from relax_egraph.egraph.saturation.infer import grown
from relax_egraph.egraph.saturation.measure import sizes_of
from relax_egraph.errors import SaturationError, Span

_REFUSED = (
    *("include", "input", "output", "push", "pop", "prove", "prove-exists", "extract"),
    *("multi-extract", "print-function", "print-size", "print-stats", "panic"),
)
_NAME = re.compile(r'[^\s()"]+')


@dataclass(frozen=True, slots=True)
class Fault:
    """A failed check of a case, as text; `found` describes the e-graph at that point."""

    span: Span
    expected: str
    found: tuple[str, ...]


@dataclass(slots=True)
class CaseRun:
    """The run of a case: the number of matches of each rule, and the failed checks."""

    egraph: EGraph
    matches: Counter[str] = field(default_factory=Counter[str])
    faults: list[Fault] = field(default_factory=list[Fault])

    sizes: Mapping[str, int] = field(default_factory=dict[str, int])

    def command(self, text: str) -> bool:
        """Run a command and count the matches; returns whether rules changed the e-graph."""
        updated = False
        for output in self.egraph.run_program(*self.egraph.parse_program(text)):
            if isinstance(output, RunScheduleOutput):
                self.matches.update(output.report.num_matches_per_rule)
                updated |= output.report.updated
        return updated

    def schedule(self, schedule: Tree) -> bool:
        """Run a schedule; after the ruleset ``facts``, evaluate functions and struct-info rules."""
        match schedule:
            case Form(items=(Atom(text="seq"), *parts)):
                return any([self.schedule(part) for part in parts])
            case Form(items=(Atom(text="saturate"), *parts)):
                updated = False
                while any([self.schedule(part) for part in parts]):
                    updated = True
                return updated
            case Form(items=(Atom(text="repeat"), Atom(text=count), *parts)) if count.isdigit():
                return any([self.schedule(part) for _ in range(int(count)) for part in parts])
            case _:
                updated = self.command(f"(run-schedule {written(schedule)})")
                deduces = any(atom.text == "facts" for atom in atoms(schedule))
                return (deduces and self._deduced()) or updated

    def _deduced(self) -> bool:
        before = self.sizes
        outputs: list[object] = [*self.egraph.run_program(*self.egraph.parse_program(_DEMANDS))]
        self.sizes = sizes_of(outputs)
        functions, names = asked(self.sizes, before), grown(self.sizes, before)
        return bool(add_values(self.egraph, functions, names))

    def tables(self) -> Tables:
        """The tables of the e-graph."""
        return Tables(self.egraph)


@contextmanager
def case_run(book: RuleBook, source: Source) -> Generator[CaseRun]:
    """Run the case `source` with the rules of `book` that can fire in it.

    The result is valid within the ``with`` only.  Raises `RuleError` for an error of egglog, with
    its place, and `SaturationError` if egglog panics.
    """
    forms = tuple(read(source))
    _check_variables(forms, source)
    with prepared(book.where(_NAME.findall(source.text)).program_of_families) as egraph:
        run = CaseRun(egraph)
        for form in forms:
            _run(form, source, book, run)
        yield run


def _check_variables(forms: Sequence[Form], source: Source) -> None:
    """Raise `RuleError` for a variable that makes a check vacuous: egglog reads it as "any"."""
    known: dict[str, Atom] = {}
    for form in forms:
        if form.head == "let" and len(form.items) > 1 and isinstance(form.items[1], Atom):
            name = form.items[1]
            if name.text in known:
                place = f"the first is at line {source.span(known[name.text].start).line}"
                raise source.error(name, f"a second {name.text}", place)
            known[name.text] = name
        facts = _facts(form) or ()
        if form.head == "check" and not facts:
            raise source.error(form, "check needs a fact")
        for atom in atoms(form):
            if atom.text.startswith("$") and atom.text not in known:
                raise source.error(atom, f"no let names {atom.text}", near(atom.text, known))
        every = Counter(atom.text for atom in atoms(form))
        for fact in facts:
            sides = fact.items[1:] if isinstance(fact, Form) and fact.head == "=" else ()
            names = [side for side in sides if isinstance(side, Atom)]
            free = (a for a in names if every[a.text] == 1 and _is_any(a.text, known))
            if len(names) == len(sides) and (first := next(free, None)):
                raise source.error(first, f"{first.text} stands for anything")


def _is_any(name: str, known: Container[str]) -> bool:
    return name not in known and not is_literal(name)


_DEMANDS = f"(run-schedule (saturate (run dim)) (run {DEMANDS})) (print-size)"


def _run(form: Form, source: Source, book: RuleBook, run: CaseRun) -> None:
    if form.head in _REFUSED:
        note = "a case is made by let, set and union, is run, and is checked"
        raise source.error(form, f"{form.head} is not allowed in a file test", note)
    try:
        if form.head == "run-schedule":
            for schedule in form.items[1:]:
                run.schedule(schedule)
            return
        run.command(written(form))
    except EggSmolError as problem:
        facts = _facts(form)
        if facts is None or not _UNMET.search(problem.context):
            raise explained(problem.context, form, form, source, book.reading.scope) from None
        held = Held(run.egraph)
        shown = held.anyway if form.head == "fail" else held.instead
        actual = tuple(line for fact in facts for line in shown(fact))
        run.faults.append(Fault(source.span(form.start), written(form), actual))
        return
    except BaseException as problem:
        if type(problem).__name__ != "PanicException":
            raise
        raise SaturationError(f"{source.span(form.start)}: egglog panicked: {problem}") from None


_UNMET = re.compile(r"^Check failed|^Command should have failed", re.MULTILINE)


def _facts(form: Form) -> Sequence[Tree] | None:
    """The facts in ``(check …)`` or ``(fail (check …))``; ``None`` for any other form."""
    match form.head, form.items[1:]:
        case "check", facts:
            return facts
        case "fail", [Form(items=[_, *facts]) as inner] if inner.head == "check":
            return facts
        case "fail", _:
            return ()
        case _:
            return None
