"""Equality of programs by meaning: up to the names of variables and dimension symbols.

Nodes of other layers are compared field by field.  A dataclass that compares by identity and
has a field ``name`` is a variable (a `Var`, a buffer, a loop variable); a string field with the
metadata `SYMBOL` names a dimension symbol; one with the metadata `LABEL` names nothing.
"""

import dataclasses
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
import sympy

from relax_egraph.errors import IllFormed, NotStructurallyEqual
from relax_egraph.ir.brief import brief
from relax_egraph.ir.depth import deep
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    Function,
    MatchCast,
    SeqExpr,
    Tuple,
)
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.op import Op, complete_attrs
from relax_egraph.ir.renaming import Renaming
from relax_egraph.ir.templates import extents_of, without_extents

SYMBOL: Mapping[str, Any] = {"dimension symbol": True}
"""The metadata of a dataclass field that holds the name, or the names, of dimension symbols."""

LABEL: Mapping[str, Any] = {"label": True}
"""The metadata of a dataclass field that is only a label of a part of a program."""


def structural_equal(a: "IRModule | BaseFunc | Expr", b: "IRModule | BaseFunc | Expr") -> bool:
    """Whether `a` and `b` are the same program; see `assert_structural_equal`."""
    try:
        assert_structural_equal(a, b)
    except NotStructurallyEqual:
        return False
    return True


@deep(IllFormed, "the programs are nested too deeply to be compared")
def assert_structural_equal(
    a: "IRModule | BaseFunc | Expr", b: "IRModule | BaseFunc | Expr"
) -> None:
    """Raise `NotStructurallyEqual` with the first difference, where it is, and both sides.

    Programs are equal if they differ only in names of variables, by a one-to-one renaming, in
    names of dimension symbols, by a one-to-one renaming in each function, in names of blocks, in
    spans and in the order of the functions.  Constants are equal by dtype and value, NaN being
    NaN and 0 not -0; attributes with their defaults filled in.  A variable that neither side
    defines may be renamed too.
    """
    if not (isinstance(a, IRModule) and isinstance(b, IRModule)):
        _Comparison().top(a, b)
        return
    _Comparison(["attributes"]).top(a.attrs, b.attrs)
    _Comparison(["global infos"]).top(a.global_infos, b.global_infos)
    for name in [*a.functions, *b.functions]:
        comparison = _Comparison([name])
        if name not in a or name not in b:
            comparison.differ(a.functions.get(name), b.functions.get(name))
        comparison.top(a[name], b[name])


class _Comparison:
    """One walk over two programs at once; `path` says where it is."""

    def __init__(self, path: Sequence[str] = ()) -> None:
        self._path = list(path)
        self._variables: dict[int, tuple[Any, Any]] = {}
        self._taken: dict[int, Any] = {}
        self._symbols = Renaming()
        self._postponed: list[tuple[list[str], sympy.Expr, sympy.Expr]] = []
        self._kinds: dict[type, Callable[[Any, Any], None]] = {
            Function: self._function,
            SeqExpr: self._sequence,
            Call: self._call,
            Constant: self._constant,
            Tuple: lambda a, b: self._each("field", a.fields, b.fields),
        }

    def top(self, a: object, b: object) -> None:
        self.same(a, b)
        for path, x, y in self._postponed:
            self._path = path
            if not self._symbols.unify(x, y):
                self.differ(x, y)

    def differ(self, a: object, b: object) -> NoReturn:
        where = ": ".join(self._path) or "the expressions differ"
        raise NotStructurallyEqual(f"{where}\n  left:  {brief(a)}\n  right: {brief(b)}")

    @contextmanager
    def _at(self, place: str) -> Generator[None]:
        self._path.append(place)
        yield
        self._path.pop()

    # --- dispatch -----------------------------------------------------------------------

    def same(self, a: Any, b: Any) -> None:
        """Compare two parts of the programs, whatever they are."""
        if isinstance(a, int | sympy.Expr) and isinstance(b, int | sympy.Expr):
            self._dim(a, b)
        elif type(a) is not type(b):
            self.differ(a, b)
        elif type(a) in self._kinds:
            self._kinds[type(a)](a, b)
        elif _is_variable(a):
            self._variable(a, b)
        elif dataclasses.is_dataclass(a):
            self._fields(a, b)
        elif isinstance(a, tuple | list):
            self._each("item", a, b)
        elif isinstance(a, Mapping):
            self._mapping("item", a, b)
        elif a != b and not (a != a and b != b):  # NaN is NaN
            self.differ(a, b)

    def _dim(self, a: int | sympy.Expr, b: int | sympy.Expr) -> None:
        if isinstance(a, int) or isinstance(b, int):
            if type(a) is not type(b) or a != b:
                self.differ(a, b)
        elif self._symbols.decides(a, b):
            if not self._symbols.unify(a, b):
                self.differ(a, b)
        else:
            self._postponed.append((list(self._path), a, b))

    def _variable(self, a: Any, b: Any) -> None:
        if id(a) in self._variables or id(b) in self._taken:
            if self._variables.get(id(a), (None, None))[1] is not b:
                self.differ(a, b)
            return
        self._variables[id(a)] = (a, b)  # keeps both alive, so that their ids stay unique
        self._taken[id(b)] = b
        self._fields(a, b, skip="name")

    def _fields(self, a: Any, b: Any, skip: str = "") -> None:
        for f in dataclasses.fields(a):
            if f.name == skip or not f.compare or f.name == "span" or f.metadata == LABEL:
                continue
            x, y = getattr(a, f.name), getattr(b, f.name)
            with self._at(f.name.replace("_", " ")):
                if f.metadata == SYMBOL:
                    self._named_symbols(x, y)
                else:
                    self.same(x, y)

    def _named_symbols(self, a: Any, b: Any) -> None:
        xs, ys = ((a,), (b,)) if isinstance(a, str) else (a, b)
        if len(xs) != len(ys) or not all(map(self._symbols.match, xs, ys)):
            self.differ(a, b)

    def _each(self, what: str, a: Sequence[Any], b: Sequence[Any]) -> None:
        for number in range(max(len(a), len(b))):
            with self._at(f"{what} {number}"):
                if number >= min(len(a), len(b)):
                    self.differ(*(side[number] if number < len(side) else None for side in (a, b)))
                self.same(a[number], b[number])

    def _mapping(self, what: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> None:
        for key in [*a, *(k for k in b if k not in a)]:
            with self._at(f"{what} {key}"):
                if key not in a or key not in b:
                    self.differ(a.get(key), b.get(key))
                self.same(a[key], b[key])

    # --- relax --------------------------------------------------------------------------

    def _function(self, a: Function, b: Function) -> None:
        self._each("parameter", a.params, b.params)
        self._sequence(a.body, b.body)
        with self._at("result's struct info"):
            self.same(a.ret_struct_info, b.ret_struct_info)
        with self._at("purity"):
            self.same(a.is_pure, b.is_pure)
        self._mapping("attribute", a.attrs, b.attrs)

    def _sequence(self, a: SeqExpr, b: SeqExpr) -> None:
        number = 0
        for i, (x, y) in enumerate(zip(a.blocks, b.blocks, strict=False)):
            if type(x) is not type(y):
                with self._at(f"block {i}"):
                    self.differ(x, y)
            for j in range(max(len(x.bindings), len(y.bindings))):
                left = x.bindings[j] if j < len(x.bindings) else None
                right = y.bindings[j] if j < len(y.bindings) else None
                self._binding(number, left, right)
                number += 1
        if len(a.blocks) != len(b.blocks):
            shared = min(len(a.blocks), len(b.blocks))
            with self._at(f"block {shared}"):
                self.differ(*(s.blocks[shared] if shared < len(s.blocks) else None for s in (a, b)))
        with self._at("result"):
            self.same(a.body, b.body)

    def _binding(self, number: int, a: Binding | None, b: Binding | None) -> None:
        shown = a or b
        with self._at(f"binding {number} ({shown.var.name})" if shown else f"binding {number}"):
            if a is None or b is None or type(a) is not type(b):
                self.differ(a, b)
            self.same(a.value, b.value)
            if isinstance(a, MatchCast) and isinstance(b, MatchCast):
                with self._at("struct info"):
                    self.same(a.struct_info, b.struct_info)
                with self._at("refusal"):
                    self.same(without_extents(a.refusal), without_extents(b.refusal))
                    self.same(extents_of(a.refusal), extents_of(b.refusal))
            with self._at("variable"):
                self.same(a.var, b.var)

    def _call(self, a: Call, b: Call) -> None:
        if isinstance(a.op, Op) or isinstance(b.op, Op):
            if a.op is not b.op:
                self.differ(a, b)
        else:
            with self._at("callee"):
                self.same(a.op, b.op)
        self._each("operand", a.args, b.args)
        self._mapping("attribute", _attrs(a), _attrs(b))
        self._each("sinfo_args", a.sinfo_args, b.sinfo_args)

    def _constant(self, a: Constant, b: Constant) -> None:
        x, y = a.data, b.data
        if x is y:
            return
        if x.dtype != y.dtype or x.shape != y.shape:
            self.differ(a, b)
        alike = x == y
        if is_float(x.dtype.name):
            alike = (alike & (np.signbit(x) == np.signbit(y))) | (np.isnan(x) & np.isnan(y))
        if not np.all(alike):
            self.differ(a, b)


def _is_variable(node: object) -> bool:
    return type(node).__eq__ is object.__eq__ and hasattr(node, "name")


def _attrs(call: Call) -> Mapping[str, Any]:
    if isinstance(call.op, Op) and not call.op.intrinsic:
        return complete_attrs(call.op, call.attrs)
    return call.attrs
