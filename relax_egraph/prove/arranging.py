"""Facts in an order in which they decide most: what is said of a value before what it is made of.

A meaning may say of a value that it is reshaped to its own shape, which any shape would be.  Where
another fact says which shape that is, it comes first.
"""

from collections.abc import Iterator, Mapping, Sequence

from relax_egraph.egraph.rulebook.forms import (
    Atom,
    Form,
    Tree,
    applied,
    atoms,
    form_of,
    is_literal,
    substituted,
    variables,
    written,
)

OF_ONE_DTYPE: Mapping[str, int] = {
    **dict.fromkeys(("R.add", "R.subtract", "R.multiply", "R.divide"), 2),
    **dict.fromkeys(("R.maximum", "R.minimum", "R.matmul"), 2),
    **dict.fromkeys(("R.negative", "R.abs", "R.broadcast_to", "R.reshape", "R.permute_dims"), 1),
}
"""Operators whose result has the dtype of their first operands, and how many these are."""

_SHAPED = ("R.reshape", "R.broadcast_to")
"""Operators that are told the shape of their result."""

_TYPE = ("shape-of", "dtype-of", "rank-of", "numel-of")


def arranged(facts: Sequence[Tree], own: frozenset[str]) -> tuple[Tree, ...]:
    """`facts`, in order; two names of one shape are one, if only facts use them (`own`)."""
    same = _same(facts, own)
    replaced = {
        written(f): f for f in (substituted(f, same) for f in facts) if not _is_of_itself(f)
    }
    kept = [*replaced.values()]
    made = {
        written(name): variables([term])
        for name, term in map(_equation, kept)
        if name is not None and term is not None and term.head.startswith(("R.", "unstable-app"))
    }
    shapes = {v for name, term in map(_equation, kept) if (v := _circular(name, term, made))}
    shapes |= {
        f.items[2].text
        for fact in kept
        for f in applied(fact, _SHAPED)
        if isinstance(f.items[2], Atom)
    }
    first = [
        fact
        for fact in kept
        for name, term in (_equation(fact),)
        if name is not None
        and name.text in shapes
        and term is not None
        and term.head in _TYPE
        and not _circular(name, term, made)
    ]
    return (*first, *(f for f in kept if f not in first))


def with_floats(facts: Sequence[Tree]) -> tuple[Tree, ...]:
    """`facts`, and that the operands of which a float is made are floats."""
    made = {n.text: t for n, t in map(_equation, facts) if n and t and t.head in OF_ONE_DTYPE}
    said = [f.items[1] for f in facts if isinstance(f, Form) and f.head == "is-float"]
    seen = {written(tree) for tree in said}
    for tree in said:
        term = made.get(tree.text) if isinstance(tree, Atom) else tree
        count = 0 if term is None else OF_ONE_DTYPE.get(term.head, 0)
        for operand in () if term is None else term.items[1 : 1 + count]:
            if written(operand) not in seen:
                seen.add(written(operand))
                said.append(operand)
    more = [form_of("is-float", tree) for tree in said if isinstance(tree, Atom)]
    return (*facts, *(f for f in more if written(f) not in {written(fact) for fact in facts}))


def with_numbers(facts: Sequence[Tree]) -> tuple[Tree, ...]:
    """`facts`, in which the number of a tensor within a term has a name."""
    named: dict[str, Form] = {}

    def name(tree: Tree) -> Tree:
        if isinstance(tree, Atom):
            return tree
        if tree.head == "const-scalar":
            fact = form_of("=", f"number of {written(tree.items[1])}", tree)
            return named.setdefault(written(tree), fact).items[1]
        return Form(tuple(map(name, tree.items)), tree.start, tree.end)

    inner: list[Tree] = []
    for fact in facts:
        _, term = _equation(fact)
        literal = isinstance(fact, Form) and any(_is_number(i) for i in fact.items[1:])
        direct = literal or (term is not None and term.head == "const-scalar")
        inner.append(fact if direct else name(fact))
    return (*named.values(), *inner)


def _is_number(tree: Tree) -> bool:
    return isinstance(tree, Form) and tree.head == "const-scalar"


def with_lists(facts: Sequence[Tree], own: frozenset[str]) -> tuple[Tree, ...]:
    """`facts`, in which a list of which they say every element is written out."""
    for name in own:
        length = next((n for f in facts if (n := _length(f, name)) is not None), None)
        elements = {k: x for f in facts for k, x in _element(f, name)}
        said = [f for f in facts if _length(f, name) is None and not [*_element(f, name)]]
        uses = sum(atom.text == name for f in said for atom in atoms(f))
        joins = sum(
            written(join.items[1]) == name
            for f in said
            for join in applied(f, ("R.concat", "R.stack"))
        )
        if length is None or uses != joins or sorted(elements) != [*range(length)]:
            continue
        every = form_of("vec-of", *(elements[k] for k in range(length)))
        left = [
            form_of("=", elements[k], x)
            for f in facts
            for k, x in _element(f, name)
            if written(x) != written(elements[k])
        ]
        return with_lists([*(substituted(f, {name: every}) for f in said), *left], own)
    return tuple(facts)


def _length(fact: Tree, name: str) -> int | None:
    """The length that a fact says a list has."""
    match fact:
        case Form(items=(Atom(text="="), Atom(text=n), Form() as term)) if n.isdigit():
            return int(n) if written(term) == f"(vec-length {name})" else None
        case _:
            return None


def _element(fact: Tree, name: str) -> Iterator[tuple[int, Tree]]:
    """The place and the element of a list that a fact says."""
    if isinstance(fact, Form) and fact.head == "=" and len(fact.items) == 3:
        for one, other in (fact.items[1:], fact.items[:0:-1]):
            match other:
                case Form(items=(Atom(text="vec-get"), Atom(text=n), Atom(text=k))):
                    if n == name and k.isdigit():
                        yield int(k), one
                case _:
                    pass


def _equation(fact: Tree) -> tuple[Atom | None, Form | None]:
    """The variable and the term that a fact says are equal."""
    match fact:
        case Form(items=(Atom(text="="), Atom() as name, Form() as term)) if not is_literal(
            name.text
        ):
            return name, term
        case Form(items=(Atom(text="="), Form() as term, Atom() as name)) if not is_literal(
            name.text
        ):
            return name, term
        case _:
            return None, None


def _is_of_itself(fact: Tree) -> bool:
    """Whether a fact says that a value is made of itself, which says nothing of what it is."""
    name, term = _equation(fact)
    if name is None or term is None or not term.head.startswith("R."):
        return False
    return name.text in variables([term])


def _same(facts: Sequence[Tree], own: frozenset[str]) -> Mapping[str, Tree]:
    """For variables that are the shape (or the like) of one value, the first of them."""
    first: dict[str, Atom] = {}
    same: dict[str, Tree] = {}
    named = [(n, written(t)) for n, t in map(_equation, facts) if n and t and t.head in _TYPE]
    for name, term in sorted(named, key=lambda pair: pair[0].text in own):
        known = first.setdefault(term, name)
        if known.text != name.text and name.text in own:
            same.setdefault(name.text, known)
    return same


def _circular(name: Atom | None, term: Form | None, made: Mapping[str, set[str]]) -> str:
    """The variable that is equal to a term of a value that is made of it."""
    if name is None or term is None or term.head not in _TYPE:
        return ""
    seen, todo = set[str](), [*variables([term])]
    while todo:
        other = todo.pop()
        if other not in seen:
            seen.add(other)
            todo += made.get(other, ())
    return name.text if name.text in seen else ""
