"""Shorthand of rules, written out before a rule is checked.

* A call needs no shape and dtype.  On a side that is matched they are any; a call that is the
  right side has those of the left side:

    (rewrite (R.matmul x w) (R.call_dps_packed "gemm" (vec-of x w)))
    -->
    (rewrite left (R.call_dps_packed "gemm" (vec-of x w) result-shape result-dtype)
      :when ((= result-shape (shape-of left)) (= result-dtype (dtype-of left))))

* A vector of tensors that is matched stands for its parts, as egglog matches no vector:

    (R.concat (vec-of x (R.exp y)) 0)
    -->
    (R.concat parts-1 0)  with  (= 2 (vec-length parts-1)) (= x (vec-get parts-1 0)) …
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from relax_egraph.egraph.node import CALLS
from relax_egraph.egraph.rulebook.forms import Atom, Form, Source, Tree, atoms, form_of, forms_in
from relax_egraph.egraph.rulebook.scope import Scope

CALL_HEADS = frozenset(f"R.{op}" for op in CALLS)
"""The constructors of calls in rules."""

_SHAPE, _DTYPE = "result-shape", "result-dtype"


def written_out(rule: Form, source: Source, scope: Scope) -> Form:
    """`rule` without shorthand; raises `RuleError` for a call whose shape is not known."""
    if not any(map(_is_short, forms_in(rule))):
        return rule
    long = _Long(rule, source, scope)
    if rule.head == "rule" and len(rule.items) > 2:
        return long.rule()
    return long.rewrite() if len(rule.items) > 2 else rule


def _is_short(form: Form) -> bool:
    return form.head == "vec-of" or (form.head in CALL_HEADS and len(form.items) == 3)


class _Long:
    """The construction of one rule without shorthand; `premises` are those that it needs."""

    def __init__(self, rule: Form, source: Source, scope: Scope) -> None:
        self._rule, self._source, self._scope = rule, source, scope
        self._premises: list[Tree] = []
        used = {atom.text for atom in atoms(rule)}
        self._parts = (n for k in count(1) if (n := f"parts-{k}") not in used)

    def rewrite(self) -> Form:
        """A rewrite; in a birewrite both sides are matched, so that nothing may be left out."""
        left, right, *options = self._rule.items[1:]
        if self._rule.head == "birewrite":
            self._check(left)
            self._check(right)
            return self._rule
        left = self._matched(left)
        if isinstance(right, Form) and right.head in CALL_HEADS and len(right.items) == 3:
            right = self._result(right, left)
        self._check(right)
        return replace(self._rule, items=(self._rule.items[0], left, right, *self._when(options)))

    def rule(self) -> Form:
        """A rule; an action may unite a variable with a call."""
        head, body, actions, *options = self._rule.items
        if not (isinstance(body, Form) and isinstance(actions, Form)):
            return self._rule
        facts = [self._matched(fact) for fact in body.items]
        done = tuple(map(self._action, actions.items))
        body = replace(body, items=(*facts, *self._premises))
        return replace(self._rule, items=(head, body, replace(actions, items=done), *options))

    def _action(self, action: Tree) -> Tree:
        match action:
            case Form(head="union", items=(union, Atom() as known, Form() as call)) if (
                call.head in CALL_HEADS and len(call.items) == 3
            ):
                action = replace(action, items=(union, known, self._result(call, known)))
            case _:
                pass
        self._check(action)
        return action

    def _when(self, options: Sequence[Tree]) -> Iterator[Tree]:
        """The options, in which the premises join those that are written."""
        texts = [o.text if isinstance(o, Atom) else "" for o in options]
        place = texts.index(":when") + 1 if ":when" in texts[:-1] else -1
        for k, option in enumerate(options):
            if k == place and isinstance(option, Form):
                facts = [self._matched(fact) for fact in option.items]
                yield replace(option, items=(*facts, *self._premises))
            else:
                yield option
        if place < 0 and self._premises:
            yield Atom(":when", self._rule.start)
            yield form_of(*self._premises, at=self._rule.start)

    def _matched(self, tree: Tree) -> Tree:
        """A pattern without shorthand; its premises are added."""
        if not isinstance(tree, Form):
            return tree
        declared = self._scope.declarations.get(tree.head)
        sorts = [p.sort for p in declared.params] if declared else []
        items = list(tree.items)
        for k, item in enumerate(items[1:], 1):
            sort = sorts[k - 1] if k <= len(sorts) else ""
            if isinstance(item, Form) and item.head == "vec-of" and sort == "Tensors":
                items[k] = self._vector(item)
            else:
                items[k] = self._matched(item)
        if tree.head in CALL_HEADS and len(items) == 3:
            items += [Atom("_", tree.start), Atom("_", tree.start)]
        return replace(tree, items=tuple(items))

    def _vector(self, vector: Form) -> Atom:
        """A variable for a vector of tensors, whose parts become premises."""
        at = vector.start
        name = Atom(next(self._parts), at)
        parts = vector.items[1:]
        length = form_of("=", str(len(parts)), form_of("vec-length", name, at=at), at=at)
        self._premises.append(length)
        for k, part in enumerate(parts):
            if part != Atom("_", part.start):
                value = form_of("vec-get", name, str(k), at=at)
                self._premises.append(form_of("=", self._matched(part), value, at=at))
        return name

    def _result(self, call: Form, equal: Tree) -> Form:
        """`call` with the shape and dtype of the value `equal`."""
        at = call.start
        names = Atom(_SHAPE, at), Atom(_DTYPE, at)
        for name, fact in zip(names, ("shape-of", "dtype-of"), strict=True):
            self._premises.append(form_of("=", name, form_of(fact, equal, at=at), at=at))
        return replace(call, items=(*call.items, *names))

    def _check(self, made: Tree) -> None:
        for form in forms_in(made):
            if form.head in CALL_HEADS and len(form.items) == 3:
                note = f"write it: ({form.head} name operands shape dtype)"
                message = f"the shape and dtype of this {form.head} are not known"
                raise self._source.error(form, message, note)
