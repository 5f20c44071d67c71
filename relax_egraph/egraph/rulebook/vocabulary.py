"""The vocabulary of rules: sorts, operators and facts, generated from the operator table.

A constructor takes the operands in order, then *all* attributes in order of definition.
Attributes are canonical (`attributes`): axes count from the front, in ascending order for
reductions and ``squeeze``, and an axis that the program omits is explicit.  Other omitted
arguments are ``""`` for a text, ``-1`` for a number, ``(R.none)`` and ``(Prim.none)`` for an
operand.  Operands of an elementwise operator have one shape: a broadcast is an explicit
``R.broadcast_to``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from relax_egraph.egraph.encoding.attributes import SORT_OF_ATTR
from relax_egraph.egraph.functions.builtin import OF_ENGINE
from relax_egraph.egraph.functions.function import Function
from relax_egraph.egraph.rulebook.traits import Traits, traits_of
from relax_egraph.ir.form import Sign
from relax_egraph.ir.op import OperandKind
from relax_egraph.ir.operators import by_operators, find, in_force

Kind: TypeAlias = Literal["constructor", "function", "relation"]

SORTS = ("Tensor", "Kernel", "Tuple", "Dim", "Prim", "Shape", "Axes", "Tensors", "Floats")
PRIMITIVE_SORTS = ("i64", "f64", "String", "bool", "Unit", "PyObject")

SORT_OF_OPERAND: Mapping[OperandKind, str] = {
    "tensor": "Tensor",
    "tensors": "Tensors",
    "shape": "Shape",
    "prim": "Prim",
}
"""The sort of each kind of operand."""


@dataclass(frozen=True, slots=True)
class Param:
    """An argument: the name of the operand or attribute, and its sort."""

    name: str
    sort: str


@dataclass(frozen=True, slots=True)
class Declaration:
    """A name that a rule may use.

    `merge` combines two values of a function; a relation's `result` is ``Unit``.
    """

    kind: Kind
    name: str
    params: tuple[Param, ...]
    result: str
    meaning: str
    merge: str = "old"

    @property
    def sorts(self) -> tuple[str, ...]:
        """The sorts of the arguments."""
        return tuple(p.sort for p in self.params)

    @property
    def text(self) -> str:
        """The declaration as egglog reads it."""
        sorts = " ".join(self.sorts)
        match self.kind:
            case "constructor":
                return f"(constructor {self.name} ({sorts}) {self.result})"
            case "function":
                return f"(function {self.name} ({sorts}) {self.result} :merge {self.merge})"
            case "relation":
                return f"(relation {self.name} ({sorts}))"

    @property
    def usage(self) -> str:
        """Its application with the sort of each argument: ``(R.add x:Tensor y:Tensor)``."""
        return f"({' '.join([self.name, *(f'{p.name}:{p.sort}' for p in self.params)])})"


def _declare(kind: Kind, head: str, result: str, meaning: str, merge: str = "old") -> Declaration:
    name, *params = head.split()
    pairs = [p.split(":") for p in params]
    return Declaration(kind, name, tuple(Param(a, b) for a, b in pairs), result, meaning, merge)


_LEAVES = (
    _declare("constructor", "Value i:i64", "Tensor", "names value `i` of the loaded block"),
    _declare("constructor", "TupleValue i:i64", "Tuple", "names tuple `i` of the loaded block"),
    _declare("constructor", "R.none", "Tensor", "an operand that is left out"),
    _declare("constructor", "R.tuple_get x:Tuple index:i64", "Tensor", "a part of a tuple"),
    _declare("constructor", "Whole x:Tuple", "Tensor", "a tuple, as operand of an opaque binding"),
    _declare("constructor", "Leaf i:i64", "Tensor", "value `i` from outside of the block"),
    _declare("constructor", "R.const value:f64 dtype:String", "Tensor", "a 0-d constant"),
    _declare(
        "constructor",
        "Opaque i:i64 operands:Tensors",
        "Tensor",
        "binding `i`, which rules cannot look into, over operands that they may rewrite",
    ),
    _declare("constructor", "K.load tensor:Tensor", "Kernel", "reads a tensor into a kernel"),
    _declare("constructor", "K.store kernel:Kernel", "Tensor", "writes a kernel's value to memory"),
)

_CALLED = "name:String operands:Tensors shape:Shape dtype:String"

_CALLS = (
    _declare("constructor", f"R.call_tir {_CALLED}", "Tensor", "the result of a loop function"),
    _declare(
        "constructor",
        f"R.call_dps_packed {_CALLED}",
        "Tensor",
        "the result of a packed function that writes into it",
    ),
    _declare(
        "constructor",
        f"R.call_pure_packed {_CALLED}",
        "Tensor",
        "the result of a packed function that returns it",
    ),
)

_DIMS = (
    _declare("constructor", "DimSym text:String", "Dim", 'a dimension in canonical text: "n * 4"'),
    _declare("constructor", "DimAdd a:Dim b:Dim", "Dim", "a + b"),
    _declare("constructor", "DimMul a:Dim b:Dim", "Dim", "a · b"),
    _declare("constructor", "DimFloorDiv a:Dim b:Dim", "Dim", "⌊a / b⌋"),
    _declare("constructor", "DimMod a:Dim b:Dim", "Dim", "a mod b"),
)

USES = ("uses-of", "only-used-by")
"""Facts about the program that are loaded for rules that read them."""

DIM_OPERATORS: Mapping[str, Sign] = {
    "DimAdd": "+",
    "DimMul": "*",
    "DimFloorDiv": "//",
    "DimMod": "%",
}
"""The constructors of dimensions, and their signs in the text of a dimension."""

_PRIMS = (
    _declare("constructor", "Prim.dim value:Dim dtype:String", "Prim", "a whole number"),
    _declare("constructor", "Prim.number value:f64 dtype:String", "Prim", "a number"),
    _declare("constructor", "Prim.none", "Prim", "an operand that is left out"),
)

_FACTS = (
    _declare("function", "shape-of x:Tensor", "Shape", "the symbolic shape, where it is known"),
    _declare("function", "rank-of x:Tensor", "i64", "the rank, where it is known"),
    _declare("function", "dtype-of x:Tensor", "String", "the element type, where it is known"),
    _declare("function", "const-scalar x:Tensor", "f64", "the one value that every element has"),
    _declare(
        "relation", "is-const x:Tensor", "Unit", "depends on constants only: free at run time"
    ),
    _declare(
        "relation",
        "has-reciprocal x:Tensor",
        "Unit",
        "a constant that the program divides by; no element is close to 0, or infinite",
    ),
    _declare(
        "function",
        "source-index x:Tensor",
        "i64",
        "the position of a value that the program has; a value that only rules made has none",
        merge="(min old new)",
    ),
    _declare(
        "relation",
        "within-tolerance x:Tensor dtype:String axis:i64",
        "Unit",
        "constant x, stored as dtype with a scale for all along axis, is within the tolerance",
    ),
    _declare(
        "relation",
        "uses-of x:Tensor n:i64",
        "Unit",
        "the program uses x, a value that it has, in n places; an output is one",
    ),
    _declare(
        "relation",
        "only-used-by x:Tensor y:Tensor",
        "Unit",
        "the program uses x for y alone, and x is no output",
    ),
    _declare("relation", "is-float x:Tensor", "Unit", "the elements are float32 or float64"),
    _declare("function", "numel-of x:Tensor", "Dim", "the number of elements"),
    _declare("function", "dim-text d:Dim", "String", "the canonical text of a dimension"),
    _declare("relation", "is-static d:Dim", "Unit", "the dimension is a number"),
    _declare(
        "function",
        "varies x:Tensor",
        "i64",
        "1 of what an elementwise operator makes at run time, 0 of a constant",
        merge="(min old new)",
    ),
    _declare(
        "relation", "shape-claim x:Tensor s:Shape", "Unit", "a rule deduces that x has shape s"
    ),
    _declare(
        "relation", "dtype-claim x:Tensor d:String", "Unit", "a rule deduces that x has dtype d"
    ),
)


@by_operators(1 << 12)
def operator(name: str) -> Traits | None:
    """The traits of the operator `name`; ``None`` if it is not in `operators`."""
    op = find(name)
    return None if op is None else traits_of(op)


@by_operators(64)
def operators() -> dict[str, Traits]:
    """The operators that rules can use, by name: from tensors, shapes and numbers to tensors."""
    every = {name: operator(name) for name in in_force()}
    return {name: traits for name, traits in every.items() if traits is not None}


@by_operators(64)
def vocabulary_table() -> tuple[Declaration, ...]:
    """Every name that a rule may use, with argument sorts and a one-line meaning."""
    every = operators().values()
    tensors = [_operator(t, "R", "Tuple" if t.makes_tuple else "Tensor") for t in every]
    kernels = [_operator(t, "K", "Kernel") for t in every if t.in_kernel]
    functions = map(function_declaration, OF_ENGINE)
    return (*_LEAVES, *_CALLS, *tensors, *kernels, *_PRIMS, *_DIMS, *_FACTS, *functions)


def function_declaration(function: Function) -> Declaration:
    """The declaration of a function in the vocabulary of rules."""
    params = tuple(Param(name, sort) for name, sort in function.params)
    return Declaration("function", function.name, params, function.result, function.meaning)


def _operator(traits: Traits, prefix: str, result: str) -> Declaration:
    op = traits.op
    sorts = {**SORT_OF_OPERAND, "tensor": "Kernel" if prefix == "K" else "Tensor"}
    operands = [Param(o.name, sorts[o.kind]) for o in op.operands]
    attrs = [Param(a.name, SORT_OF_ATTR[a.kind]) for a in op.attrs]
    meaning = op.meaning if prefix == "R" else f"{op.meaning} Within one kernel."
    return Declaration("constructor", f"{prefix}.{op.name}", (*operands, *attrs), result, meaning)
