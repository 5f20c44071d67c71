"""The values of terms of a rule."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from relax_egraph.egraph.encoding.attributes import meant
from relax_egraph.egraph.rulebook.forms import Atom, Form, Tree, forms_in
from relax_egraph.egraph.rulebook.vocabulary import operators
from relax_egraph.ir import dims
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import ShapeExpr, TensorStructInfo, TupleStructInfo
from relax_egraph.prove import functions, primitives, reals, sums
from relax_egraph.prove.attributes import values_of
from relax_egraph.prove.beside import UNMADE, Beside, application, refuses
from relax_egraph.prove.bindings import Function, Unbound, text_of
from relax_egraph.prove.choices import Impossible, Questions
from relax_egraph.prove.conditions import Negation, Zero
from relax_egraph.prove.lists import Lists
from relax_egraph.prove.meanings import MEANINGS
from relax_egraph.prove.nodes import (
    Mapped,
    Part,
    Result,
    Uniform,
    Value,
    dtype_of,
    key_of,
    shape_of,
)
from relax_egraph.prove.polynomial import of_dim
from relax_egraph.prove.sums import Sum
from relax_egraph.prove.typing import IllFormed, tensor_info
from relax_egraph.verify.instances.primitives import Fails, computes
from relax_egraph.verify.instances.query import literal_of


@dataclass
class Terms(Lists):
    """Terms: operators, functions of rules, primitives."""

    def several(self, trees: Sequence[Tree]) -> list[Any]:
        """The values of several terms."""
        return [self.value(t) for t in trees]

    def value(self, tree: Tree) -> Any:
        """The value of a term; raises `Unbound`."""
        if isinstance(tree, Atom):
            literal = literal_of(tree.text)
            if literal is not None:
                value = literal.value
                return functions.real(value) if isinstance(value, float) else value
            return self.variable(tree.text)
        match tree.head:
            case "R.none" | "Prim.none":
                return None
            case "R.const":
                value, dtype = self.several(tree.items[1:])
                return self.constant(reals.number(value), dtype)
            case "R.tuple_get":
                return self.part(self.operand(tree.items[1]), tree.items[2])
            case head if head in OF_TENSORS and self.waits and self.is_unmade(tree.items[1]):
                raise Unbound(text_of(tree.items[1]))
            case "shape-of":
                return shape_of(self.operand(tree.items[1]))
            case "rank-of":
                return len(shape_of(self.operand(tree.items[1])))
            case "dtype-of":
                return dtype_of(self.operand(tree.items[1]))
            case "numel-of":
                return dims.product(shape_of(self.operand(tree.items[1])))
            case "const-scalar":
                value = self.operand(tree.items[1])
                if isinstance(value, Uniform):
                    return value.value
                return self.unknown_number(f"the number of {key_of(value)}")
            case "low-of" | "high-of" | "magnitude-of":
                return self.bound(tree.head, self.operand(tree.items[1]))
            case "DimSym":
                return self.dim_of_text(tree)
            case "vec-length" if text_of(tree.items[1]) in self.lengths:
                return self.lengths[text_of(tree.items[1])]
            case "unary" | "binary" | "ternary":
                return self.elementwise(tree)
            case "reduction" | "linear-reduction" | "extreme-reduction" | "folding-reduction":
                return self.reduction(tree)
            case "additive":
                return self.chosen_operator(tree, ("add", "subtract"))
            case "unstable-app":
                f, *args = self.several(tree.items[1:])
                return self.applied(f, tuple(args))
            case "ordering-min" | "ordering-max":
                return self.ordered(tree)
            case head if head.startswith("R."):
                return self.term(tree)
            case head if computes(head) or head == "count-matches":
                return self.computed(head, tuple(self.several(tree.items[1:])), text_of(tree))
            case head:
                raise IllFormed(f"nothing is known of {head}")

    def ordered(self, tree: Form) -> Any:
        """The lesser or the greater of two values, in an order of the engine: any order."""
        a, b = tree.items[1:]
        first = self.choices.of(f"order of {text_of(a)} and {text_of(b)}", (True, False))
        return self.value(a if first == (tree.head == "ordering-min") else b)

    def variable(self, name: str) -> Any:
        """The value of a variable; raises `Unbound`."""
        if name in self.values:
            return self.values[name]
        if name in self.defined:
            if name in self.making:
                raise IllFormed(f"{name} is made of itself")
            form, assumed = self.defined[name]
            before, self.assumed = self.assumed, assumed and self.assumed
            self.making.append(name)
            try:
                value = self.value(form)
            finally:
                self.assumed = before
                self.making.pop()
            self.values[name] = self.uniform(name, value)
            return self.values[name]
        raise Unbound(name)

    def elementwise(self, fact: Form) -> Value:
        """``(unary t f x)`` and its like: `f` is any elementwise function."""
        _, function, *operands = fact.items[1:]
        values = self.beside(None, operands)
        f = Function(fact.head, None, f"function of {text_of(function)}")
        self.bind(text_of(function), f)
        return self.applied(f, tuple(values))

    def reduction(self, fact: Form) -> Value:
        """``(reduction t f x axes keep)``: `f` is any function of a multiset."""
        _, function, x, axes, keep = fact.items[1:]
        names = _FOLDS.get(fact.head)
        known = self.values.get(text_of(function))
        value = self.operand(x)
        rank = len(shape_of(value))
        op = operators()["sum"].op
        which = self.open(axes, lambda: values_of(op, op.attrs[0], (value,)))
        kept = self.open(keep, lambda: (False, True))
        if not all(isinstance(a, int) and 0 <= a < rank for a in which):
            raise Impossible
        if isinstance(known, Function):
            if names and known.op is None:
                raise IllFormed("whether two functions are one is not known")
            if names and known.name not in names:
                raise Impossible
            f = known
        elif names:
            name = self.choices.of(f"{fact.head} {text_of(function)}", names)
            f = Function("reduction", operators()[name].op, name)
        else:
            f = Function("reduction", None, f"function of {text_of(function)}")
        self.bind(text_of(function), f)
        return self.applied(f, (value, which, kept))

    def chosen_operator(self, fact: Form, names: Sequence[str]) -> Value:
        """``(additive t f x y)``: `f` is each of several operators."""
        _, function, *operands = fact.items[1:]
        name = self.choices.of(f"{fact.head} {text_of(function)}", names)
        f = Function("binary", operators()[name].op, name)
        self.bind(text_of(function), f)
        return self.applied(f, tuple(self.beside(f.op, operands)))

    def beside(self, op: Op | None, items: Sequence[Tree]) -> list[Any]:
        """The operands of an elementwise function."""
        values: list[Any] = [UNMADE] * len(items)
        for place in self.in_order(op, items):
            values[place] = self.operand(items[place], Beside(op, values, place, self.assumed))
        return values

    def applied(self, f: Function, args: tuple[Any, ...]) -> Value:
        """``f`` of values, and of axes and a flag if it is a reduction."""
        if f.op is not None:
            count = len(f.op.operands)
            attrs = {a.name: meant(a, v) for a, v in zip(f.op.attrs, args[count:], strict=True)}
            return self.result(f.op, args[:count], attrs)
        operands = args[:1] if f.kind == "reduction" else args
        self.typing.of_unknown(f.name, [*map(dtype_of, operands)], assumed=self.assumed)
        if f.kind != "reduction":
            self.typing.of_one_shape(_ANY_ELEMENTWISE, args, self.assumed)
            shape = shape_of(args[0])
            info = TensorStructInfo(ShapeExpr(shape), self.dtype_of_result(f, args), len(shape))
            return Mapped(f.name, args, info)
        x, axes, keep = args
        if len(set(axes)) < len(axes) or not all(0 <= a < len(shape_of(x)) for a in axes):
            raise self.without_value(f"the {f.name} along axes that are not there")
        shape = tuple(
            1 if k in axes else d for k, d in enumerate(shape_of(x)) if keep or k not in axes
        )
        info = TensorStructInfo(ShapeExpr(shape), dtype_of(x), len(shape))
        return Mapped(f.name, (x,), info, tuple(axes), keep)

    def dtype_of_result(self, f: Function, args: Sequence[Value]) -> str:
        """The dtype of an elementwise function of any kind: a function of those of its operands."""
        dtypes = [dtype_of(a) for a in args]
        return self.choices.of(
            f"dtype of {f.name} of {dtypes}", [*dict.fromkeys((*dtypes, "bool"))]
        )

    def term(self, tree: Form) -> Value:
        """The result of an operator; attributes that are open are chosen."""
        op = operators()[tree.head[2:]].op
        count = len(op.operands)
        items = tree.items[1 : 1 + count]
        operands: list[Any] = [UNMADE] * len(items)
        attrs: dict[str, Any] = {}
        expected, around = self.expected, self.around
        for place in self.in_order(op, items):
            self.attributes(op, tree.items[1 + count :], operands[:1], attrs)
            if self.assumed:
                self.may_accept(op, operands, attrs)
            item = items[place]
            match op.operands[place].kind:
                case "tensor" if place >= op.required and self.is_left_out(item):
                    operands[place] = None
                case "tensor":
                    beside = Beside(op, operands, place, self.assumed, attrs, expected, around)
                    operands[place] = self.operand(item, beside)
                case "tensors":
                    operands[place] = self.tensors(item, op, tree.items[1 + count :])
                case "shape":
                    operands[place] = self.shape(op, item, operands, attrs)
                case _:
                    operands[place] = self.host_number(item)
        self.attributes(op, tree.items[1 + count :], operands, attrs)
        return self.result(op, tuple(operands), {a.name: attrs[a.name] for a in op.attrs})

    def is_left_out(self, item: Tree) -> bool:
        """Whether an optional operand is absent, as any is that is not said to be a tensor."""
        if not isinstance(item, Atom) or not self.is_unmade(item):
            return False
        if is_said_to_be_tensor(item.text, tuple(self.facts)):
            return False
        if not self.choices.of(f"{item.text} is left out", (False, True)):
            return False
        self.bind(item.text, None)
        return True

    def may_accept(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> None:
        """Raise `Impossible` if an operator refuses the operands that are made."""
        applied = application(op, operands, attrs)
        if applied is not None and refuses(applied):
            raise Impossible

    def in_order(self, op: Op | None, items: Sequence[Tree]) -> list[int]:
        """The places of operands: those of which a fact says how they are made are first."""
        places = list(range(len(items)))
        if op is not None and any(o.kind != "tensor" for o in op.operands):
            return places
        return sorted(places, key=lambda k: self.is_unmade(items[k]))

    def attributes(
        self, op: Op, items: Sequence[Tree], operands: Sequence[Any], attrs: dict[str, Any]
    ) -> None:
        """Add the attributes of an operator to `attrs`: all, once the first operand is made."""
        for attr, item in zip(op.attrs, items, strict=True):
            if attr.name in attrs:
                continue
            if operands[:1] == [UNMADE] and attr.kind != "bool":
                try:
                    chosen = self.value(item)
                except Unbound:
                    continue
            else:
                chosen = self.attribute(op, attr, item, operands)
            attrs[attr.name] = meant(attr, chosen)

    def result(self, op: Op, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Value:
        """The result of an operator, with its type."""
        info = self.typing.of(op, operands, attrs, assumed=self.assumed)
        if isinstance(info, TensorStructInfo):
            info = tensor_info(info)
        if op.name == "nn.batch_norm" and self.assumed:  # a variance is not negative
            self.bounds.append(reals.Bound(operands[4], ">=", sums.NOTHING))
        return Result(op, operands, dict(attrs), info)

    def part(self, whole: Any, number: Tree) -> Value:
        """One field of a tuple."""
        assert isinstance(whole, Result)
        assert isinstance(whole.info, TupleStructInfo)
        fields = whole.info.fields
        place = self.open(number, lambda: range(len(fields)))
        if not 0 <= place < len(fields):
            raise self.without_value(f"a tuple of {len(fields)} has no part {place}")
        return Part(whole, place, tensor_info(fields[place]))

    def computed(self, head: str, args: tuple[Any, ...], text: str) -> Any:
        """A primitive or a function of rules."""
        if any(isinstance(a, Sum) for a in args):
            numbers = (reals.as_float(a) for a in args if isinstance(a, Sum))
            known = [float(n) for n in numbers if n is not None]
            if len(known) == len(args):  # in floats, as the engine does
                value = self.computed(head, (*known,), text)
                return functions.real(value) if isinstance(value, float) else value
            result = reals.computed(head, args)
            self.round(head, args, result)
            return result
        if head in MEANINGS:
            try:
                return MEANINGS[head](self.questions(text, args), self.extents, *args)
            except Impossible:
                raise self.without_value(f"{text} has no value") from None
        if head == "vec-get" and (
            args[0] is None or dims.prove_ge(args[1], len(args[0])) or dims.prove_ge(-1, args[1])
        ):
            raise self.without_value(f"{text} is beyond the vector's ends")
        for divisor in primitives.divisors(head, args):
            self.divided_by(divisor, text)
        try:
            return primitives.computed(head, args)
        except Fails:
            raise self.without_value(f"{text} has no value") from None

    def divided_by(self, divisor: dims.Dim, text: str) -> None:
        """Assume that a divisor is not 0, or note that this has to follow of what a rule makes."""
        if divisor == 0:
            raise self.without_value(f"{text} has no value")
        if dims.distinct(divisor, 0):
            return
        is_other = Negation(Zero(of_dim(divisor)))
        if self.on_right:
            self.typing.needed.append((f"{text} has a value", is_other))
        elif dims.prove_ge(divisor, 0):
            self.extents.at_least(divisor, 1)
        else:
            self.extents.note(is_other)

    def dim_of_text(self, tree: Form) -> Any:
        """The dimension that a text says: its symbols are none of those of the instance."""
        match tree.items[1]:
            case Form(items=(Atom(text="to-string"), number)):
                return self.value(number)
            case text:
                return self.extents.of(primitives.computed("DimSym", (self.value(text),)))

    def without_value(self, reason: str) -> Exception:
        """What is raised of a term without a value: no instance has it, unless the rule makes it.

        Rules that compute such a term while they run end the saturation.
        """
        return IllFormed(reason) if self.on_right else Impossible()

    def questions(self, text: str, args: tuple[Any, ...]) -> Questions:
        """The choices of a term, which are its own as long as its operands are."""
        if self.asked.setdefault(text, args) != args:
            text = f"{text} of {args}"
        return Questions(self.choices, text)

    def right(self, tree: Tree) -> Any:
        """The value of a term that the rule makes, or a number."""
        value = self.value(tree)
        return reals.number(value) if isinstance(value, float) else value


OF_TENSORS = frozenset(("shape-of", "rank-of", "dtype-of", "numel-of", "const-scalar"))
"""What is known of every tensor."""


@lru_cache(1 << 10)
def is_said_to_be_tensor(name: str, facts: Sequence[Tree]) -> bool:
    """Whether facts look at the type of a variable, or have it where an operand is needed."""
    return any(
        isinstance(item, Atom) and item.text == name
        for form in (f for fact in facts for f in forms_in(fact))
        for item in _tensors_of(form)
    )


def _tensors_of(form: Form) -> Sequence[Tree]:
    """The operands of a term that are tensors wherever it has a value."""
    if form.head in OF_TENSORS or form.head in ("is-float", "is-number"):
        return form.items[1:2]
    known = operators().get(form.head.removeprefix("R."))
    return form.items[1 : 1 + known.op.required] if known and form.head.startswith("R.") else ()


_FOLDS: Mapping[str, tuple[str, ...]] = {
    "linear-reduction": ("sum", "mean"),
    "extreme-reduction": ("max", "min"),
    "folding-reduction": ("sum", "mean", "max", "min", "prod"),
}

_ANY_ELEMENTWISE = operators()["add"].op
