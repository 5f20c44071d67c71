"""Terms over chosen operators, from small to large.

Bottom-up enumeration by observational equivalence: larger terms are built of the smallest term of
each class of equal terms only.
"""

from collections.abc import Iterator, Sequence
from itertools import product

from relax_egraph.discover.terms import Apply, Term, Vector, variables
from relax_egraph.discover.worlds import SORTS, attributes
from relax_egraph.egraph.rulebook.scope import near
from relax_egraph.egraph.rulebook.vocabulary import Declaration, vocabulary_table


def operators_of(names: Sequence[str]) -> tuple[Declaration, ...]:
    """The operators `names`, such as ``R.add``.

    Raises ``ValueError`` for a name that is no operator, and for an operator with arguments of
    other sorts than terms have.
    """
    known = {d.name: d for d in vocabulary_table() if d.name.startswith("R.")}
    for name in names:
        if name not in known:
            note = near(name, known)
            raise ValueError(f"there is no operator {name!r}" + f"; {note}" * bool(note))
        others = [p for p in known[name].params if p.sort not in SORTS]
        if others or known[name].result != "Tensor":
            what = f"`{others[0].name}` of sort {others[0].sort}" if others else "several results"
            raise ValueError(f"{name} has {what}: terms have arguments of {', '.join(SORTS)}")
    return tuple(known[name] for name in dict.fromkeys(names))


def terms_of_size(
    size: int,
    operators: Sequence[Declaration],
    blocks: Sequence[Sequence[Term]],
    axes: Sequence[int] = (),
) -> Iterator[Apply]:
    """All terms with `size` operators; `blocks` are the operands with 0, 1, ... operators.

    `axes` are those of matrices that may be written out.
    """
    for op in operators:
        count = sum(_OPERANDS.get(sort, 0) for sort in op.sorts)
        for sizes in product(range(size), repeat=count):
            if sum(sizes) == size - 1:
                for operands in product(*(blocks[k] for k in sizes)):
                    yield from _applied(op, operands, axes)


_OPERANDS = {"Tensor": 1, "Tensors": 2}
"""The operands of an argument, by sort."""


def _applied(op: Declaration, operands: Sequence[Term], axes: Sequence[int]) -> Iterator[Apply]:
    """The applications of `op` to `operands`, with all attributes."""
    known = variables(*operands)
    rest = iter(operands)
    choices: list[tuple[Term, ...]] = []
    for param in op.params:
        match param.sort:
            case "Tensor":
                choices.append((next(rest),))
            case "Tensors":
                choices.append((Vector((next(rest), next(rest))),))
            case _:
                choices.append(attributes(op.name, param, known, axes))
    for args in product(*choices):
        yield Apply(op.name, args)
