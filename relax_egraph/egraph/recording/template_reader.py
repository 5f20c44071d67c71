"""The templates of a rule, from its premises, sides and actions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from relax_egraph.egraph.functions.function import FUNCTIONS
from relax_egraph.egraph.recording.templates import Part, RowTemplate, RuleTemplates, Slot, Template
from relax_egraph.egraph.rulebook.forms import Atom, Form, Tree, form_of, is_literal, written
from relax_egraph.egraph.rulebook.generate import APPLICATIONS, generated
from relax_egraph.egraph.rulebook.guards import asking
from relax_egraph.egraph.rulebook.rule import Direction, Row, Rule, row_of
from relax_egraph.egraph.rulebook.scope import declarations_in
from relax_egraph.egraph.rulebook.vocabulary import Declaration, vocabulary_table
from relax_egraph.ir.operators import by_operators

APPLY = "unstable-app"
"""The head of a template whose operator is a value: its first argument."""

_NAMED = "unnamed-{}"


@by_operators(64)
def _vocabulary() -> frozenset[str]:
    return frozenset(d.name for d in vocabulary_table())


@by_operators(64)
def _operators() -> frozenset[str]:
    """The operators whose result is a tensor, a value in a kernel, or a tuple."""
    return frozenset(d.name for d in vocabulary_table() if d.result in _NODE_SORTS)


@by_operators(64)
def applications() -> Mapping[str, Declaration]:
    """The relations through which one rule covers many operators."""
    relations = (entry.form for entry in generated() if entry.form.head == "relation")
    return {d.name: d for form in relations for d in declarations_in(form)}


def rule_templates(rule: Rule, declared: Mapping[str, Declaration]) -> list[RuleTemplates]:
    """The templates of each direction of `rule`.

    A direction that equates no tensors, creates none, and deduces nothing is left out.
    """
    names = {**applications(), **declared}
    every = (_Reader(d, names).templates() for d in rule.directions)
    return [one for one in every if one.edges or one.created or one.writes]


class _Reader:
    """The reader of one direction of a rule."""

    def __init__(self, direction: Direction, declared: Mapping[str, Declaration]) -> None:
        self._direction, self._declared = direction, declared
        self._named = 0
        self._sorts: dict[str, str] = {}
        self._defined: dict[str, Form] = {}
        self._extra: list[Tree] = []
        self._same: list[tuple[Form, Form]] = []
        self._lets: dict[str, Tree] = {}
        self._facts = [self._fact(fact) for fact in asking(direction.body)]
        self._body = " ".join(written(fact) for fact in (*self._facts, *self._extra))

    def templates(self) -> RuleTemplates:
        """The templates of the direction: its premises, unions, new nodes, and rows."""
        self._lets = self._direction.lets
        self._defined |= {n: v for n, v in self._lets.items() if isinstance(v, Form) and _makes(v)}
        edges: list[tuple[Part, Part]] = []
        for left, right in self._direction.unions:
            if (sort := self._sort(left, right)) in _NODE_SORTS:
                edges.append((self._part(left, sort, ()), self._part(right, sort, ())))
        created = (self._part(t, "", ()) for a in self._direction.head for t in _created(a))
        templates = RuleTemplates(
            name=self._direction.name,
            body=self._body,
            lets="",
            edges=tuple(edges),
            premises=tuple((self._part(a, "", ()), self._part(b, "", ())) for a, b in self._same),
            created=tuple(part for part in created if isinstance(part, Template)),
            reads=tuple(self._rows(map(row_of, (*self._facts, *self._extra)))),
            writes=tuple(self._rows(self._direction.rows)),
        )
        return replace(templates, lets=self._needed(slot.text for slot in templates.slots))

    def _rows(self, rows: Iterable[Row | None]) -> Iterator[RowTemplate]:
        for row in rows:
            if row and self._is_row(row.head):
                declared = self._declared[row.head]
                places = (*row.args, *((row.value,) if row.value else ()))
                sorted_places = zip(places, (*declared.sorts, declared.result), strict=False)
                parts = (self._argument(p, s, ()) for p, s in sorted_places if s in _READ_BACK)
                yield row.head, tuple(parts)

    def _is_row(self, name: str) -> bool:
        """Whether rules may have added rows to `name`, or such may follow from a union."""
        if name not in self._declared:
            return False
        known = (_vocabulary(), APPLICATIONS, _BESIDE, FUNCTIONS)
        return name in _FACTS_OF_UNIONS or not any(name in names for names in known)

    def _needed(self, texts: Iterable[str]) -> str:
        """The bindings of the names in expressions."""
        waiting, needed = list(texts), set[str]()
        while waiting:
            new = self._lets.keys() & _tokens(waiting.pop()) - needed
            needed |= new
            waiting += (written(self._lets[name]) for name in new)
        lets = (f"(let {n} {written(value)})" for n, value in self._lets.items() if n in needed)
        return " ".join(lets)

    def _sort(self, *sides: Tree) -> str:
        """The sort of both sides of a union."""
        for side in sides:
            if isinstance(side, Form) and side.head == APPLY:
                return "Tensor"
            if isinstance(side, Form) and side.head in self._declared:
                return self._declared[side.head].result
            if isinstance(side, Atom) and side.text in self._defined:
                head = self._defined[side.text].head
                return "Tensor" if head == APPLY else self._declared[head].result
            if isinstance(side, Atom) and side.text in self._sorts:
                return self._sorts[side.text]
        return ""

    def _fact(self, fact: Tree) -> Tree:
        """`fact` with a name for each operand; the names are recorded."""
        if not (isinstance(fact, Form) and fact.head == "="):
            named = self._named_in(fact, True)
            if isinstance(named, Form) and named.head in APPLICATIONS:
                _, value, *applied = named.items
                if isinstance(value, Atom) and value.text != "_":
                    self._defined.setdefault(value.text, form_of(APPLY, *applied))
            return named
        plain = len(fact.items) == 3 and any(isinstance(side, Atom) for side in fact.items[1:])
        sides = tuple(self._named_in(side, plain) for side in fact.items[1:])
        variables = [s.text for s in sides if isinstance(s, Atom) and not is_literal(s.text)]
        for side in sides:
            if isinstance(side, Form) and side.head in self._declared:
                result = self._declared[side.head].result
                self._sorts.update(dict.fromkeys(variables, result))
                if _makes(side):
                    first = [self._defined.setdefault(variable, side) for variable in variables]
                    self._same += ((known, side) for known in first if known is not side)
        return form_of(fact.items[0], *sides)

    def _named_in(self, tree: Tree, outside: bool = False) -> Tree:
        """`tree` with names for its operands; an `outside` row stays a fact."""
        if not isinstance(tree, Form) or tree.head not in self._declared:
            return tree if isinstance(tree, Atom) else form_of(*map(self._named_in, tree.items))
        row = self._is_row(tree.head)
        params = self._declared[tree.head].sorts
        args: list[Tree] = []
        for item, sort in zip(tree.items[1:], params, strict=True):
            arg = self._named_in(item)
            plain = isinstance(arg, Form) and not _makes(arg)
            unnamed = isinstance(arg, Atom) and arg.text == "_"
            if (_makes(tree) or row) and (plain or unnamed):
                arg = self._name(arg)
            if isinstance(arg, Atom) and not is_literal(arg.text) and arg.text != "_":
                self._sorts[arg.text] = sort
            args.append(arg)
        named = form_of(tree.items[0], *args)
        return named if outside or not row else self._name(named)

    def _name(self, tree: Tree) -> Atom:
        """A new name for `tree`."""
        self._named += 1
        name = Atom(_NAMED.format(self._named), 0)
        if isinstance(tree, Form):
            self._extra.append(form_of("=", name, tree))
        return name

    def _part(self, tree: Tree, sort: str, within: tuple[str, ...]) -> Part:
        """The template of `tree`; names in `within`, which are being expanded, stay names."""
        if isinstance(tree, Atom):
            defined = self._defined.get(tree.text)
            if defined is None or tree.text in within:
                return Slot(tree.text, sort)
            return self._part(defined, sort, (*within, tree.text))
        if not _makes(tree):
            return Slot(written(tree), sort)
        params = self._params(tree)
        pairs = zip(tree.items[1:], params, strict=True)
        return Template(tree.head, tuple(self._argument(a, p, within) for a, p in pairs))

    def _params(self, tree: Form) -> Sequence[str]:
        if tree.head != APPLY:
            return self._declared[tree.head].sorts
        function = tree.items[1]
        assert isinstance(function, Atom)
        sort = self._sorts[function.text]
        return [sort, *_FUNCTIONS[sort]]

    def _argument(self, tree: Tree, sort: str, within: tuple[str, ...]) -> Part | tuple[Part, ...]:
        if isinstance(tree, Atom):
            tree = self._lets.get(tree.text, tree)
        if sort == "Tensors" and isinstance(tree, Form) and tree.head == "vec-of":
            return tuple(self._part(item, "Tensor", within) for item in tree.items[1:])
        return self._part(tree, sort, within)


_FACTS_OF_UNIONS = ("const-scalar", "is-const")
"""Facts of the engine that may follow from a union."""

_READ_BACK = (
    *("Tensor", "Tensors", "i64", "f64", "bool", "String"),
    *("Axes", "Floats", "Shape", "Dim", "Prim"),
)
"""The sorts of the places that a `RowTemplate` has."""

_NODE_SORTS = ("Tensor", "Kernel", "Tuple")
_FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "Unary": ("Tensor",),
    "Binary": ("Tensor", "Tensor"),
    "Ternary": ("Tensor", "Tensor", "Tensor"),
    "Reduction": ("Tensor", "Axes", "bool"),
}
"""The sorts of the operands of functions of each sort."""


_BESIDE = ("together",)
"""Further generated relations on the operands of a value."""


def _makes(tree: Tree) -> bool:
    """Whether `tree` applies an operator."""
    return isinstance(tree, Form) and (tree.head == APPLY or tree.head in _operators())


def _created(tree: Tree) -> Iterator[Form]:
    """The outermost applications of operators in `tree`."""
    if isinstance(tree, Form):
        for item in tree.items:
            if isinstance(item, Form) and _makes(item):
                yield item
            else:
                yield from _created(item)


def _tokens(text: str) -> set[str]:
    return set(text.replace("(", " ").replace(")", " ").split())
