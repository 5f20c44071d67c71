"""The names that rule files declare and use, and the checks of declarations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from relax_egraph.egraph.functions.builtin import OF_ENGINE
from relax_egraph.egraph.rulebook.forms import Atom, Form, Source
from relax_egraph.egraph.rulebook.guards import GUARDS
from relax_egraph.egraph.rulebook.meaning import Meaning
from relax_egraph.egraph.rulebook.vocabulary import (
    PRIMITIVE_SORTS,
    SORTS,
    Declaration,
    Param,
    vocabulary_table,
)
from relax_egraph.errors import Span, nearest
from relax_egraph.rules import FACTS

LOAD = "load"
"""The ruleset of temporary rules that the engine adds to load a part of a program."""

DEMANDS = "demands"
"""The ruleset of demands for values of functions."""

DEMAND = "demand"
"""The ruleset of rewrites that are marked ``:demand``, which run before all others."""

ENGINE_RULESETS = (*FACTS, "conflict", DEMANDS, LOAD)
"""Rulesets that run without a budget, or in no phase at all: closed to users' rules."""

ENGINE_PREFIX = "engine/"
"""The prefix of names that the engine generates while it runs."""

WRITTEN_BY_RULES = ("const-scalar", "triangle")
"""Facts that every rule may add.  Rules of users only read the other facts of the engine."""

PRIMITIVES = (
    *("vec-of", "vec-empty", "vec-get", "vec-length", "vec-push", "vec-pop", "vec-append"),
    *("vec-set", "vec-remove", "vec-contains", "vec-not-contains", "vec-range"),
    *("unstable-vec-map", "unstable-fn", "abs", "min", "max", "not", "log2", "to-f64", "to-i64"),
)
"""Primitives that a message may suggest; egglog has more."""


def vocabulary() -> tuple[Declaration, ...]:
    """Every name that rules may use: operators, dimensions, facts and guards."""
    return (*vocabulary_table(), *GUARDS)


@dataclass(slots=True)
class Scope:
    """The names that are in scope, with the places of declarations in files.

    Rules of a `trusted` file may be in the engine's own rulesets, and add facts that are `closed`
    to other rules.  `functions` are the names of functions computed outside of the e-graph,
    `meanings` what the rows of relations and functions mean, as far as it is stated.
    """

    declarations: dict[str, Declaration] = field(
        default_factory=lambda: {d.name: d for d in vocabulary()}
    )
    sorts: set[str] = field(default_factory=lambda: {*SORTS, *PRIMITIVE_SORTS})
    rulesets: dict[str, Span | None] = field(
        default_factory=lambda: dict.fromkeys((*ENGINE_RULESETS, "lower"))
    )
    rules: dict[str, Span | None] = field(default_factory=dict[str, Span | None])
    trusted: bool = False
    closed: frozenset[str] = frozenset()
    functions: set[str] = field(default_factory=lambda: {f.name for f in OF_ENGINE})
    meanings: dict[str, Meaning] = field(default_factory=dict[str, Meaning])

    def copy(self) -> "Scope":
        """An independent scope with the same names."""
        return Scope(
            dict(self.declarations),
            set(self.sorts),
            dict(self.rulesets),
            dict(self.rules),
            self.trusted,
            self.closed,
            set(self.functions),
            dict(self.meanings),
        )


def near(name: str, known: Iterable[str]) -> str:
    """``did you mean R.add?``: the known name closest to `name`; empty if none is close."""
    names = list(known)
    bare = name.removeprefix("R.").lower()
    operator = [n for n in names if n in (f"R.{name}", f"R.nn.{name}") or n.lower() == bare]
    return f"did you mean {operator[0]}?" if operator else nearest(name, names)


def declare(form: Form, source: Source, scope: Scope) -> None:
    """Check a declaration and add its names to `scope`; raises `RuleError`."""
    name = form.items[1] if len(form.items) > 1 else None
    if not isinstance(name, Atom):
        raise source.error(form, f"{form.head} needs a name: {_USAGE[form.head]}")
    check_own(name, source)
    new = [*_declared(form)]
    match form.head, form.items[2:]:
        case "ruleset", []:
            _new_ruleset(name, source, scope)
        case "sort", _:
            _new_sort(name, source, scope)
        case "datatype", variants:
            _new_sort(name, source, scope)
            for variant in variants:
                if not (isinstance(variant, Form) and variant.head):
                    raise source.error(variant, f"datatype is written {_USAGE['datatype']}")
        case head, _ if not new:
            raise source.error(form, f"{head} is written {_USAGE[head]}")
        case _:
            pass
    for atom, params, result in new:
        _check_name(atom, params, result, source, scope)
        scope.declarations[atom.text] = _declaration(atom, params, result)


def declarations_in(form: Form) -> Iterator[Declaration]:
    """The constructors, functions and relations that `form` declares."""
    return (_declaration(name, params, result) for name, params, result in _declared(form))


def _declared(form: Form) -> Iterator[tuple[Atom, Sequence[Atom], Atom | None]]:
    """Each name that `form` declares, with its argument sorts and the sort of its result."""
    match form.head, form.items[1:]:
        case (
            ("constructor" | "function"),
            [Atom() as name, Form() as params, Atom() as result, *_],
        ):
            yield name, _sorts(params.items), result
        case "relation", [Atom() as name, Form() as params]:
            yield name, _sorts(params.items), None
        case "datatype", [Atom() as result, *variants]:
            for variant in variants:
                if isinstance(variant, Form) and isinstance(name := variant.items[0], Atom):
                    yield name, _sorts(variant.items[1:]), result
        case _:
            pass


def _declaration(name: Atom, params: Sequence[Atom], result: Atom | None) -> Declaration:
    return Declaration(
        "function" if result else "relation",
        name.text,
        tuple(Param(f"argument-{k}", p.text) for k, p in enumerate(params, 1)),
        result.text if result else "Unit",
        "declared by a rule file",
    )


def check_own(name: Atom, source: Source) -> None:
    """Raise `RuleError` if `name`, which a file declares, has the prefix of the engine's names."""
    if name.text.strip('"').startswith(ENGINE_PREFIX):
        note = f"names that begin with {ENGINE_PREFIX} are its own; choose another"
        raise source.error(name, f"{name.text} is a name of the engine", note)


_USAGE = {
    "ruleset": "(ruleset my-rules)",
    "sort": "(sort Pairs (Vec Pair))",
    "datatype": "(datatype Pair (Both Tensor Tensor))",
    "constructor": "(constructor Both (Tensor Tensor) Pair)",
    "function": "(function cost-of (Tensor) i64 :merge (min old new))",
    "relation": "(relation is-weight (Tensor))",
}


def _sorts(items: Sequence[object]) -> list[Atom]:
    """The argument sorts of a declaration: its items before the options."""
    sorts: list[Atom] = []
    for item in items:
        if not isinstance(item, Atom) or item.text.startswith(":"):
            break
        sorts.append(item)
    return sorts


def _new_ruleset(name: Atom, source: Source, scope: Scope) -> None:
    if name.text in scope.rulesets:
        place = scope.rulesets[name.text]
        note = f"it is declared at {place}" if place else "it is the engine's own"
        raise source.error(name, f"ruleset {name.text} is declared already", note)
    scope.rulesets[name.text] = source.span(name.start)


def _new_sort(name: Atom, source: Source, scope: Scope) -> None:
    if name.text in scope.sorts:
        raise source.error(name, f"sort {name.text} is declared already")
    scope.sorts.add(name.text)


def _check_name(
    name: Atom, params: Sequence[Atom], result: Atom | None, source: Source, scope: Scope
) -> None:
    """Raise `RuleError` if a constructor, function or relation has a known name or unknown sort."""
    if name.text in scope.declarations:
        raise source.error(name, f"{name.text} is declared already")
    for sort in (*params, *((result,) if result else ())):
        if sort.text not in scope.sorts:
            note = near(sort.text, scope.sorts)
            raise source.error(sort, f"unknown sort {sort.text}", note)
