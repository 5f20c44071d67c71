"""The operands and attributes of an instance: what a rule leaves open is chosen, each way once."""

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from relax_egraph.egraph.functions.function import FUNCTIONS
from relax_egraph.egraph.rulebook.forms import Atom, Form, Tree, atoms, forms_in, is_literal
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import DTYPES, is_float
from relax_egraph.ir.op import AttrParam, Op
from relax_egraph.ir.struct_info import ShapeExpr, TensorStructInfo
from relax_egraph.prove import reals, sums
from relax_egraph.prove.algebra import is_value_of
from relax_egraph.prove.attributes import values_of
from relax_egraph.prove.beside import Beside
from relax_egraph.prove.bindings import Bindings, Unbound, lists_in, text_of
from relax_egraph.prove.choices import Impossible
from relax_egraph.prove.layouts import ANY, ON_IMAGES, AnyOrder
from relax_egraph.prove.nodes import (
    Leaf,
    Uniform,
    Value,
    shape_of,
)
from relax_egraph.prove.sums import Sum
from relax_egraph.prove.typing import IllFormed, tensor_info

NARROW = frozenset(("int8", "int16", "int64", "uint8", "uint16", "uint64"))
"""Dtypes that are tried with ranks 0 and 1, where an instance has these."""


@dataclass
class Operands(Bindings, ABC):
    """Operands, attributes, shapes and numbers."""

    def uniform(self, name: str, value: Any) -> Any:
        """`value`, or the tensor of the number that a premise says it is."""
        if name not in self.scalars or not isinstance(value, Value):
            return value
        info = tensor_info(value.info)
        number = self.scalar(name)
        if not is_value_of(number, str(info.dtype)):
            raise Impossible
        self.note_integer(number, str(info.dtype))
        return Uniform(number, info)

    def constant(self, number: Sum, dtype: str) -> Uniform:
        """The tensor without axes of a number, which the dtype has to have; raises `IllFormed`."""
        if not is_value_of(number, dtype):
            raise IllFormed(f"a constant of {dtype} has another value")
        if self.assumed:
            self.note_integer(number, dtype)
        elif not is_float(dtype) and not self.typing.wholes.has(dtype, number):
            raise IllFormed(f"whether {dtype} has the number is not decided")
        return Uniform(number, TensorStructInfo(ShapeExpr(()), dtype, 0))

    def note_integer(self, number: Sum, dtype: str) -> None:
        """Assume that a number is one of a dtype, as a tensor of the left side has it."""
        if not is_float(dtype) and reals.as_float(number) is None:
            self.typing.wholes.note(number, dtype)

    def scalar(self, name: str) -> Sum:
        """The number that all elements of a tensor are."""
        tree = self.scalars[name]
        try:
            return reals.number(self.value(tree))
        except Unbound:
            number = self.unknown_number(text_of(tree))
            if isinstance(tree, Atom):
                self.bind(tree.text, number)
            return number

    def unknown_number(self, name: str) -> Sum:
        """A symbolic number."""
        return sums.apply(f"number {name}")

    def bound(self, kind: str, value: Value) -> Sum:
        """A bound of the elements of a tensor."""
        number = self.unknown_number(f"{kind} {value.key}")
        if kind == "magnitude-of":
            self.bounds.append(reals.Bound(value, "finite", sums.NOTHING))
        else:
            self.bounds.append(reals.Bound(value, ">=" if kind == "low-of" else "<=", number))
        return number

    def operand(self, tree: Tree, beside: Beside | None = None) -> Any:
        """The value of an operand; a variable that nothing says more of is an operand of the rule.

        It has a rank and a dtype that the operator accepts `beside` the operands before it.
        """
        if isinstance(tree, Atom) and not is_literal(tree.text):
            try:
                return self.within(beside, lambda: self.variable(tree.text))
            except Unbound:
                if tree.text in self.defined:
                    raise  # what it is made of has no value yet
                self.values[tree.text] = self.leaf(tree.text, beside)
                return self.values[tree.text]
        return self.within(beside, lambda: self.value(tree))

    def within(self, beside: Beside | None, evaluate: Callable[[], Any]) -> Any:
        """The value of a term whose result has the shape that stands `beside` it."""
        before = self.expected, self.around
        self.expected = beside.shape if beside is not None else None
        self.around = beside
        try:
            return evaluate()
        finally:
            self.expected, self.around = before

    def leaf(self, name: str, beside: Beside | None) -> Value:
        """An operand of any rank and dtype."""
        if name in lists_in(tuple(self.facts)):
            raise Unbound(name)
        ranks, dtypes = self.limits.get(name, (range(self.search.ranks + 1), self.dtypes.every))
        if beside is not None and beside.op is not None and beside.op.name in ON_IMAGES:
            ranks = (len(ON_IMAGES[beside.op.name].letters),)
        like = beside.shape if beside is not None else None
        like = like if like is not None else self.stated_shape(name)
        if beside is not None:
            dtypes = beside.accepted(dtypes)
        dtypes = self.dtypes.beside({d for _, d in self.named}, self.only(name, dtypes))
        dtype = self.choices.of(f"dtype of {name}", dtypes)
        self.named.add((name, dtype))
        if like is not None:
            shape = like if len(like) in ranks else self.choices.of("no rank", ())
        else:
            ranks = ranks if beside is None else beside.of_rank(ranks)
            few = [r for r in ranks if r <= 1] or list(ranks)[:1]
            narrow = dtype in NARROW and len(self.dtypes.every) < len(DTYPES)
            if narrow and len(few) < len(ranks) and self.leave_out(name, dtype):
                ranks = few
            rank = self.rank(f"rank of {name} of {dtype}", ranks)
            shape = tuple(self.extents.symbol(f"{identifier(name)}_{k}") for k in range(rank))
        self.most_axes = max(self.most_axes, len(shape))
        info = TensorStructInfo(ShapeExpr(shape), dtype, len(shape))
        return self.uniform(name, Leaf(name, info))

    def rank(self, label: str, ranks: Sequence[int]) -> int:
        """One of the `ranks`, first of all one that no pass before had."""
        return self.choices.of(label, ranks if self.search.above < 0 else ranks[::-1])

    def stated_shape(self, name: str) -> tuple[dims.Dim, ...] | None:
        """The shape that facts say an operand has, if it is that of what is known."""
        known = (t for t in _shapes_like(tuple(self.facts), name) if self.is_known(t))
        return next(map(self.value, known), None)

    def is_known(self, tree: Tree) -> bool:
        """Whether a term is a variable with a value, or the shape of one."""
        match tree:
            case Atom(text=name):
                return name in self.values
            case Form(items=(Atom(text="shape-of"), Atom(text=name))):
                return name in self.values
            case _:
                return False

    def attribute(self, op: Op, attr: AttrParam, item: Tree, operands: Sequence[Any]) -> Any:
        """The value of an attribute, or each that it may have."""
        of_image = op.name in ON_IMAGES and attr.name in ("dtype", "out_dtype")
        if of_image and isinstance(item, Atom) and self.is_of_images(item.text):
            return self.open(item, lambda: ("", "float32"))  # one stands for all
        return self.open(item, lambda: values_of(op, attr, operands))

    def is_of_images(self, name: str) -> bool:
        """Whether nothing but operators on images has a variable."""
        trees = (*self.facts, *self.made)
        of_images = (
            f for t in trees for f in forms_in(t) if f.head.removeprefix("R.") in ON_IMAGES
        )
        uses = sum(isinstance(i, Atom) and i.text == name for f in of_images for i in f.items)
        return uses == sum(a.text == name for t in trees for a in atoms(t))

    def open(self, item: Tree, options: Any) -> Any:
        """The value of an attribute, or each of `options` if it is a variable without one."""
        try:
            return self.value(item)
        except Unbound:
            if isinstance(item, Atom):
                several = options()
                if ANY in several and not self.is_inspected(item.text):
                    several = [o for o in several if o in ("", ANY)]
                value = self.chosen(item, several)
                if isinstance(value, Sum):
                    value = self.unknown_number(f"{item.text} {item.start}")
                self.bind(item.text, value)
                return value
            return self.listed(item, options)

    def chosen(self, item: Tree, options: Sequence[Any]) -> Any:
        """One of `options`, whose symbols are those of this attribute only."""
        text = f"{text_of(item)} {item.start}"
        if set(DTYPES) <= {o for o in options if isinstance(o, str)}:
            return self.chosen_dtype(text, options)
        value = self.choices.of(f"attribute {text}", options)
        if value == ANY:
            return AnyOrder.of(text, options)
        return self.extents.of(with_symbols_of(identifier(text), value))

    def chosen_dtype(self, name: str, dtypes: Sequence[str]) -> str:
        """A dtype that an attribute says."""
        dtypes = self.only(name, dtypes)
        if self.most_axes > 1:
            dtypes = [d for d in dtypes if d not in NARROW or not self.leave_out(name, d)]
        dtype = self.choices.of(f"attribute {name}", dtypes)
        self.named.add((name, dtype))
        return dtype

    def is_inspected(self, name: str) -> bool:
        """Whether a fact looks at the order of axes that a variable says, or computes it."""
        for form in (f for fact in self.facts for f in forms_in(fact)):
            computed = form.head == "=" and any(
                isinstance(i, Form) and i.head in FUNCTIONS for i in form.items
            )
            said = any(isinstance(i, Atom) and i.text == name for i in form.items)
            if said and (form.head in FUNCTIONS or computed):
                return True
        return False

    def listed(self, item: Form, options: Any) -> Any:
        """A vector of which elements are open."""
        if item.head != "vec-of":
            raise Unbound(text_of(item))
        value = self.chosen(item, options())
        if len(value) != len(item.items) - 1:
            raise Impossible
        for tree, element in zip(item.items[1:], value, strict=True):
            if not self.pattern_of(tree, element):
                self.unify(self.value(tree), element)
        return value

    def pattern_of(self, tree: Tree, value: Any) -> bool:
        """Bind a variable without a value; whether it was one."""
        if isinstance(tree, Atom) and not is_literal(tree.text) and tree.text not in self.values:
            self.bind(tree.text, value)
            return True
        return False

    def shape(self, op: Op, item: Tree, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """A shape, of any rank and extents."""
        try:
            return self.value(item)
        except Unbound:
            pass
        if isinstance(item, Form):
            if item.head != "vec-of":
                raise Unbound(text_of(item))
            return tuple(self.extent(op, t) for t in item.items[1:])
        ranks: Sequence[int] = range(self.search.ranks + 1)
        if op.name == "strided_slice":
            ranks = (len(attrs["axes"]),)
        elif op.name == "broadcast_to":
            ranks = range(len(shape_of(operands[0])), self.search.ranks + 1)
        rank = self.rank(f"rank of {item.text}", ranks)
        self.most_axes = max(self.most_axes, rank)
        name = identifier(item.text)
        self.values[item.text] = tuple(self.position(op, f"{name}_{k}") for k in range(rank))
        return self.values[item.text]

    def position(self, op: Op, name: str) -> dims.Dim:
        """An extent, or for a slice a position, which may count from the end."""
        value = self.extents.symbol(name)
        if op.name == "strided_slice" and self.choices.of(f"{name} is from the end", (False, True)):
            return dims.sub(-1, value)
        return value

    def host_number(self, tree: Tree) -> Any:
        """A number of the host; a dimension without a value is any whole number."""
        match tree:
            case Form(items=(Atom(text="Prim.dim"), Atom(text=name) as item, _)) if self.is_unmade(
                item
            ):
                value = self.extents.symbol(identifier(name))
                if self.choices.of(f"{name} is negative", (False, True)):
                    value = dims.sub(-1, value)
                self.bind(name, value)
            case _:
                pass
        return self.value(tree)

    def extent(self, op: Op, tree: Tree) -> dims.Dim:
        """An item of a shape; a variable without a value is any extent, or position of a slice."""
        try:
            return self.value(tree)
        except Unbound:
            if not isinstance(tree, Atom):
                raise
            value = self.position(op, identifier(tree.text))
            self.bind(tree.text, value)
            return value


def identifier(text: str) -> str:
    """A part of the name of a symbol, other than that of any other text."""
    return "".join(c if c.isalnum() else f"_{ord(c):x}_" for c in text)


def with_symbols_of(name: str, value: Any) -> Any:
    """An attribute, or a part of one, with symbols that have `name` in theirs."""
    if isinstance(value, tuple):
        parts: tuple[Any, ...] = value
        return tuple(with_symbols_of(name, part) for part in parts)
    if value is None or isinstance(value, Sum | str | float) or not dims.symbols(value):
        return value
    return dims.substitute(value, {s: dims.symbol(f"{s}_{name}") for s in dims.symbols(value)})


@lru_cache(1 << 12)
def _shapes_like(facts: Sequence[Tree], name: str) -> Sequence[Tree]:
    """The terms in `facts` that are the shape of a tensor, as these say it."""
    same, found = {f"(shape-of {name})"}, True
    while found:
        found = False
        for fact in facts:
            if not isinstance(fact, Form) or fact.head != "=":
                continue
            sides = {text_of(side) for side in fact.items[1:]}
            if sides & same and not sides <= same:
                same, found = same | sides, True
    trees = (t for fact in facts for f in forms_in(fact) for t in (f, *f.items[1:]))
    return tuple(t for t in trees if text_of(t) in same)
