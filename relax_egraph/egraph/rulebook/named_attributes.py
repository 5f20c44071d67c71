"""Attributes by name in terms of rules, written out in order.

    (R.nn.conv2d x w :groups g)
    -->
    (R.nn.conv2d x w (vec-of 1 1) (vec-of 0 0) (vec-of 1 1) g "NCHW" "OIHW" "" "")

An attribute that is left out has its default, on both sides; ``:padding _`` matches any.  Axes and
the scale of attention have no default that is the same for all operands: they are written.
"""

from collections.abc import Sequence
from dataclasses import replace

from relax_egraph.egraph.encoding import literals
from relax_egraph.egraph.encoding.attributes import SORT_OF_ATTR, said
from relax_egraph.egraph.rulebook.forms import Atom, Form, Source, Tree
from relax_egraph.egraph.rulebook.scope import near
from relax_egraph.egraph.rulebook.vocabulary import operators
from relax_egraph.ir.op import REQUIRED, AttrParam, Op

_OMITTED = {"tensor": "(R.none)", "prim": "(Prim.none)"}

_DEPEND_ON_OPERANDS = frozenset(
    ("axis", "axes", "channel_axis", "seq_axis", "batch_axis", "scale", "indices_or_sections")
)
"""Attributes whose canonical value depends on the operands, if they are left out."""


def with_all_attributes(tree: Form, source: Source) -> Form:
    """`tree` with every attribute in its place; raises `RuleError`."""
    items = tuple(
        with_all_attributes(item, source) if isinstance(item, Form) else item for item in tree.items
    )
    prefix, _, name = tree.head.partition(".")
    if prefix in ("R", "K") and name in operators() and any(map(_is_name, tree.items[1:])):
        items = (items[0], *_arguments(operators()[name].op, items[1:], tree, source))
    return tree if items == tree.items else replace(tree, items=items)


def _is_name(item: Tree) -> bool:
    return isinstance(item, Atom) and item.text.startswith(":")


def _arguments(op: Op, items: Sequence[Tree], at: Form, source: Source) -> Sequence[Tree]:
    """The operands and attributes of a term in order."""
    first = next(k for k, item in enumerate(items) if _is_name(item))
    names, values = items[first::2], items[first + 1 :: 2]
    known = [*(o.name for o in op.operands), *(a.name for a in op.attrs)]
    given = dict(zip(known, items[:first], strict=False))
    if first > len(known):
        raise source.error(items[first - 1], f"{at.head} takes {len(known)} arguments")
    for k, name in enumerate(names):
        text = name.text[1:] if isinstance(name, Atom) and _is_name(name) else ""
        if text not in known:
            note = near(text, known) or f"it has: {', '.join(a.name for a in op.attrs) or 'none'}"
            raise source.error(name, f"{at.head} has no attribute {text or 'here'}", note)
        if text in given:
            raise source.error(name, f"{at.head} has {text} twice")
        if k == len(values) or _is_name(values[k]):
            raise source.error(name, f"{text} of {at.head} needs a value")
        given[text] = values[k]
    arguments: list[Tree] = []
    for parameter in (*op.operands, *op.attrs):
        value = given.get(parameter.name) or _default(op, parameter.name, at.start)
        if value is None:
            note = f"write :{parameter.name} and its value, or _ for any that matches"
            message = f"{parameter.name} of {at.head} has no default"
            raise source.error(at, message, note)
        arguments.append(value)
    return arguments


def _default(op: Op, name: str, at: int) -> Tree | None:
    """The default of an operand or attribute, placed at `at`; ``None`` if it has none."""
    for operand in op.operands:
        if operand.name == name:
            omitted = _OMITTED.get(operand.kind) if operand.optional else None
            return None if omitted is None else _tree(omitted, at)
    attr = next(a for a in op.attrs if a.name == name)
    text = None if name in _DEPEND_ON_OPERANDS else _text(attr)
    return None if text is None else _tree(text, at)


def _text(attr: AttrParam) -> str | None:
    if attr.default is REQUIRED:
        return None
    value = "" if attr.name == "out_dtype" else said(attr, attr.default)
    return None if value is None else literals.attribute(SORT_OF_ATTR[attr.kind], value)


def _tree(text: str, at: int) -> Tree:
    """A literal, ``(vec-of 1 1)`` or ``(R.none)``, as a tree at `at`."""
    if not text.startswith("("):
        return Atom(text, at)
    return Form(tuple(Atom(part, at) for part in text[1:-1].split()), at, at)
