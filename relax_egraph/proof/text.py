"""A trace as text, and as plain data.

A program is a graph: a term that is shared or long is printed once and gets a name, so that the
text is linear in the size of the program.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from relax_egraph.egraph.node import CALLS, LEAF, OPAQUE, SCALAR, Attrs, mapped
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Constant, PrimValue, Var
from relax_egraph.ir.operators import find
from relax_egraph.ir.struct_info import ShapeStructInfo, shape_text
from relax_egraph.proof.difference import difference
from relax_egraph.proof.term import Operand, Term, post_order
from relax_egraph.proof.trace import Deduction, Step, Trace

_LONG = 72
"""The most characters of a term without a name."""

_INDENT = "  "


def trace_text(trace: Trace) -> str:
    """The source, the steps, each with its rule and what it changes, and the result."""
    count = len(trace.steps)
    lines = [f"{trace.function}, output {trace.output}: {count} step{'s' * (count != 1)}"]
    lines += ["source", *(_INDENT + line for line in program_lines(trace, trace.source))]
    for number, step in enumerate(trace.steps, 1):
        lines.append(f"{number}. {rule_text(trace, step.rule)}")
        lines += [3 * " " + line for line in deduced_lines(trace, step)]
        lines += [3 * " " + line for line in step_lines(trace, step)]
    lines += ["result", *(_INDENT + line for line in program_lines(trace, trace.result))]
    return "\n".join(lines)


def rule_text(trace: Trace, rule: str) -> str:
    """A rule with its place, its float class and its law, if it has them."""
    known = trace.rules.get(rule)
    if known is None:
        return rule
    stated = f"; {known.float_class}" if known.float_class != "unstated" else ""
    return f"{rule} ({known.span}{stated}){': ' * bool(known.law)}{known.law}"


def deduced_lines(trace: Trace, step: Step) -> list[str]:
    """The deduced rows that a step reads, with a line for each rule and relation."""
    rows: dict[tuple[str, str], list[str]] = {}
    for one in step.deduced:
        rows.setdefault((one.rule, one.name), []).append(deduction_text(trace, one))
    return [
        f"reads {texts[0]}{f' and {len(texts) - 1} more' * (len(texts) > 1)}, "
        f"deduced by {rule_text(trace, rule)}"
        for (rule, _), texts in rows.items()
    ]


def deduction_text(trace: Trace, one: Deduction) -> str:
    """A deduced row in the notation of rules: ``(is-nonnegative exp(x))``."""

    def item(of: Any) -> str:
        match of:
            case Term():
                text = _Writer(trace).one(of, {t: _brief(trace, t) for t in of.operands})
                return text if len(text) <= _LONG else _brief(trace, of)
            case tuple():
                return f"[{', '.join(map(item, of))}]"
            case PrimValue() | str() | bool() | float() | None:
                return _operand(of, {}) if isinstance(of, PrimValue) else repr(of)
            case _:
                return str(of)

    return f"({' '.join((one.name, *map(item, one.row)))})"


def _brief(trace: Trace, term: Term) -> str:
    """`term` without its subterms."""
    return _Writer(trace).head(term)


def program_lines(trace: Trace, root: Term) -> list[str]:
    """The text of a program: a named value in each line, and its result in the last."""
    writer = _Writer(trace)
    text = writer.written(root, (root,))
    return [*writer.lets, text]


def step_lines(trace: Trace, step: Step) -> list[str]:
    """The text of a step: before, after, and the definitions of names."""
    changed = difference(step)
    writer = _Writer(trace)
    for term in changed.shared:
        writer.name(term)
    roots = (step.before, step.after)
    before, after = (writer.written(t, roots) for t in roots)
    names = [f"{writer.names[t]} = {writer.head(t)}" for t in changed.shared if t.children]
    where = [*names, *writer.lets]
    start = [f"  {before}", f"→ {after}"]
    return [*start, *(f"  {'where' if not k else '     '} {w}" for k, w in enumerate(where))]


class _Writer:
    """The printer of terms; `names` has the names of terms, `lets` their definitions."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.names: dict[Term, str] = {}
        self.lets: list[str] = []

    def name(self, term: Term) -> None:
        """Give `term` a name, unless its text is a name or a number."""
        if term not in self.names and (term.children or term.op == OPAQUE):
            self.names[term] = f"%{len(self.names)}"

    def written(self, root: Term, roots: Iterable[Term]) -> str:
        """`root` as text; terms that occur more than once in `roots` get a name."""
        uses = Counter(c for t in _together(roots) for c in t.operands)
        texts: dict[Term, str] = {}
        for term in post_order(root, self.names):
            text = self.one(term, {**texts, **self.names})
            bound = term is not root and (uses[term] > 1 or len(text) > _LONG)
            if bound and term.children:
                self.name(term)
                self.lets.append(f"{self.names[term]} = {text}")
            else:
                texts[term] = text
        return texts.get(root) or self.names[root]

    def head(self, term: Term) -> str:
        """`term` with the names of its operands, or ``…`` for operands without one."""
        known = {t: self.names.get(t, "…") for t in term.operands}
        plain = {t: self.one(t, {}) for t in term.operands if not t.children}
        return self.one(term, known | plain)

    def one(self, term: Term, texts: Mapping[Term, str]) -> str:
        """`term`, with `texts` for its operands."""
        match term.op:
            case _ if term.op == LEAF:
                return leaf_text(self.trace, term.key)
            case _ if term.op == SCALAR:
                return f"{term.scalar:g}"
            case _ if term.op == OPAQUE and term.key in self.trace.opaque:
                name = str(self.trace.opaque[term.key].var.name)
            case _ if term.op in CALLS:
                return f"{term.callee}({', '.join(texts[t] for t in term.operands)})"
            case _:
                name = f"K.{term.op}" if term.sort == "kernel" else term.op
        parts = [_operand(c, texts) for c in term.children if c is not None]
        return f"{name}({', '.join([*parts, *_attributes(term)])})"


def _together(roots: Iterable[Term]) -> Iterator[Term]:
    seen = set[Term]()
    for root in roots:
        for term in post_order(root, seen):
            seen.add(term)
            yield term


def leaf_text(trace: Trace, key: int) -> str:
    """The name of a leaf; for a constant, its value or its number."""
    match trace.leaves.get(key):
        case Var(name=name):
            return name
        case Constant(data=data) if data.size == 1:
            return f"{data.flat[0]!s}"
        case Constant():
            return f"constant{key}"
        case _:
            return f"leaf{key}"


def _operand(child: Operand, texts: Mapping[Term, str]) -> str:
    match child:
        case Term():
            return texts[child]
        case tuple():
            return f"[{', '.join(texts[c] for c in child)}]"
        case ShapeStructInfo(values=values):
            return shape_text(values or ())
        case PrimValue(value=value):
            return str(value) if isinstance(value, float) else dims.text(value)
        case None:
            return ""


def _attrs(term: Term) -> Attrs:
    """The attributes of an operator."""
    return () if term.op == OPAQUE else term.attrs


def _attributes(term: Term) -> Iterator[str]:
    """The attributes with a value other than the default."""
    op = find(term.op)
    usual = {a.name: a.default for a in op.attrs} if op else {}
    for name, value in _attrs(term):
        if name not in usual or usual[name] != value:
            yield f"{name}={value!r}"


def trace_data(trace: Trace) -> dict[str, Any]:
    """A trace as plain data.

    `nodes` are the nodes of all programs.  An operand is a position in this list, a list of
    positions for several tensors, a text for a shape or a scalar, or ``None`` if it is omitted.
    The sides of a step are positions, too.
    """
    places: dict[Term, int] = {}
    nodes: list[dict[str, Any]] = []
    sides = [side for step in trace.steps for side in (step.before, step.after)]
    for root in (trace.source, *sides, trace.result):
        for term in post_order(root, places):
            places[term] = len(nodes)
            nodes.append(_node(trace, term, places))
    steps = [
        {"number": number, **_step(trace, step, places)}
        for number, step in enumerate(trace.steps, 1)
    ]
    return {
        "function": trace.function,
        "output": trace.output,
        "source": places[trace.source],
        "result": places[trace.result],
        "steps": steps,
        "nodes": nodes,
    }


def _node(trace: Trace, term: Term, places: Mapping[Term, int]) -> dict[str, Any]:
    known: dict[str, Any] = {"op": term.op, "sort": term.sort}
    if term.op == LEAF:
        return known | {"name": leaf_text(trace, term.key)}
    if term.op == SCALAR:
        return known | {"value": _plain(term.scalar), "attributes": {"dtype": term.dtype}}
    if term.op == OPAQUE and term.key in trace.opaque:
        known["name"] = trace.opaque[term.key].var.name
    operands = [
        _operand(c, {})
        if isinstance(c, ShapeStructInfo | PrimValue)
        else mapped(c, places.__getitem__)
        for c in term.children
    ]
    return known | {"operands": operands, "attributes": _plain(dict(_attrs(term)))}


def _step(trace: Trace, step: Step, places: Mapping[Term, int]) -> dict[str, Any]:
    rule = trace.rules.get(step.rule)
    return {
        "rule": step.rule,
        "place": str(rule.span) if rule else None,
        "law": rule.law if rule else None,
        "float": rule.float_class if rule else None,
        "backwards": step.backwards,
        "deduced": [_deduction(trace, one) for one in step.deduced],
        "before": places[step.before],
        "after": places[step.after],
        "text": step_lines(trace, step),
    }


def _deduction(trace: Trace, one: Deduction) -> dict[str, Any]:
    rule = trace.rules.get(one.rule)
    return {
        "rule": one.rule,
        "place": str(rule.span) if rule else None,
        "law": rule.law if rule else None,
        "text": deduction_text(trace, one),
    }


def _plain(value: Any) -> Any:
    """`value` as JSON data; infinities and NaN become texts."""
    match value:
        case dict():
            return {str(k): _plain(v) for k, v in value.items()}
        case tuple() | list():
            return [_plain(v) for v in value]
        case np.generic():
            return _plain(value.item())
        case float() if not math.isfinite(value):
            return str(value)
        case _:
            return value
