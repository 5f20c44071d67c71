"""Computes the lifetimes of the tensors of functions, by a walk over their bindings."""

from collections.abc import Mapping, Sequence

import numpy as np

from relax_egraph.ir import dims
from relax_egraph.ir.expr import (
    Binding,
    Call,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.polynomial import polynomial
from relax_egraph.ir.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TupleStructInfo,
    symbols_of,
)
from relax_egraph.ir.walk import bindings_of, free_vars
from relax_egraph.passes.analyses.lifetimes import (
    KernelCall,
    Lifetimes,
    Meeting,
    Place,
    Roots,
    Tensor,
)
from relax_egraph.tir.stmt import PrimFunc

_NONE: Roots = frozenset()

_KEEPS_NOTHING = frozenset(
    f"vm.builtin.{name}"
    for name in (
        *("reshape", "writable", "copy", "unique", "make_tuple", "tuple_getitem", "shape_of"),
        *("rng_uniform", "rng_normal", "kv_cache_append", "kv_cache_view", "kv_cache_length"),
        *("print", "assert", "check_indices", "check_elements", "tensor_to_shape"),
    )
)
"""Packed functions that keep no reference to their arguments, but may return them."""

_AT_RUN_TIME = "relax.run."
"""The name prefixes of operators of the run time; they keep no reference to their arguments."""

_CLOSURES = ("make_closure", "invoke_closure", "invoke_pure_closure")
"""Operators whose operands escape."""


def lifetimes_of(module: IRModule) -> dict[str, Lifetimes]:
    """The lifetimes in each relax function of `module`, which `call_tir_rewrite` has rewritten."""
    functions = dict(module.relax_functions())
    lifetimes = {name: Lifetimes() for name in functions}
    while True:
        again = {name: _Walk(module, f, lifetimes).walk() for name, f in functions.items()}
        same = all(
            (a.kept, a.returned) == (lifetimes[name].kept, lifetimes[name].returned)
            for name, a in again.items()
        )
        lifetimes = again
        if same:
            return lifetimes


class _Walk:
    """Numbers the steps of one function; `callees` are the lifetimes of all functions so far."""

    def __init__(
        self, module: IRModule, function: Function, callees: Mapping[str, Lifetimes]
    ) -> None:
        self._module = module
        self._function = function
        self._callees = callees
        self._lifetimes = Lifetimes()
        self._roots: dict[Var, Roots] = {p: frozenset({p}) for p in function.params}
        self._params = {p: k for k, p in enumerate(function.params)}
        self._places: list[Place] = []
        self._known: dict[str, Place | None] = {
            name: None for p in function.params for name in symbols_of(p.struct_info)
        }
        self._sequences = 0

    def walk(self) -> Lifetimes:
        """The lifetimes in the function."""
        result = self._sequence(self._function.body)
        self._step("return")
        self._leave(result - self._params.keys())
        self._lifetimes.returned |= {self._params[p] for p in result & self._params.keys()}
        for tensor in self._lifetimes.tensors.values():
            if tensor.leaves:
                tensor.end = self._now
        return self._lifetimes

    def _sequence(self, seq: SeqExpr) -> Roots:
        self._sequences += 1
        number = self._sequences
        for binding in bindings_of(seq):
            self._places.append(Place(number, binding.var))
            self._binding(binding)
            self._places.pop()
        return self._use(seq.body)

    def _binding(self, binding: Binding) -> None:
        var, value = binding.var, binding.value
        match value:
            case Call(op=Op(name="builtin.alloc_tensor"), args=[shape, StringImm(value=dtype)]):
                self._roots[var] = self._allocation(var, shape, dtype)
            case If(cond=cond, true_branch=true, false_branch=false):
                self._step("if")
                self._use(cond)
                self._roots[var] = self._branches(true, false)
            case _:
                self._step(_title(value))
                roots = self._value(value)
                self._roots[var] = _NONE if _holds_nothing(var.struct_info) else roots
        if isinstance(binding, MatchCast) or not isinstance(value, If):
            for name in symbols_of(var.struct_info) - self._known.keys():
                self._known[name] = self._places[-1]

    def _allocation(self, var: Var, shape: Expr, dtype: str) -> Roots:
        symbols = symbols_of(shape.struct_info)
        if not isinstance(shape, ShapeExpr) or not symbols <= self._known.keys():
            self._lifetimes.unknown.append(var)
            return _NONE
        binders = [b for name in symbols if (b := self._known[name]) is not None]
        order = {b: k for k, b in enumerate(self._known.values())}
        extents = dims.product(shape.values)
        size = polynomial(dims.mul(extents, np.dtype(dtype).itemsize))
        self._lifetimes.tensors[var] = Tensor(
            len(self._lifetimes.tensors),
            var,
            shape.values,
            dtype,
            size,
            tuple(self._places),
            max(binders, key=lambda b: order[b], default=None),
            self._now,
        )
        return frozenset({var})

    def _branches(self, true: SeqExpr, false: SeqExpr) -> Roots:
        results: list[Roots] = []
        begins: list[int] = []
        for branch in (true, false):
            known = dict(self._known)
            begins.append(self._now + 1)
            self._step("then" if branch is true else "else")
            results.append(self._sequence(branch))
            self._known = known
        self._step("end if")
        both = results[0] | results[1]
        self._touch(both)
        meeting = Meeting(self._now, (begins[0], begins[1]), (results[0], results[1]))
        self._lifetimes.events.append(meeting)
        return both

    # --- values -----------------------------------------------------------------------

    def _value(self, value: Expr) -> Roots:
        """The tensors that `value` may alias; its operands are used at this step."""
        match value:
            case Call(op=GlobalVar(name=name), args=args):
                callee = self._module[name]
                operands = tuple(map(self._use, args))
                if isinstance(callee, PrimFunc):
                    call = KernelCall(self._now, callee, operands)
                    self._lifetimes.events.append(call)
                    return _NONE
                return self._function_call(self._callees[name], operands)
            case Call(op=Op(name=name), args=[ExternFunc(name=packed), *args]) if name.startswith(
                "call_"
            ):
                roots = self._union(args)
                if packed not in _KEEPS_NOTHING and not packed.startswith(_AT_RUN_TIME):
                    self._leave(roots)
                return roots
            case Call(op=Op(name=name), args=args) if name not in _CLOSURES:
                return self._union(args)
            case Call(op=callee, args=args):
                operands = args if isinstance(callee, Op) else (callee, *args)
                self._leave(self._union(operands))
                return _NONE
            case Function():
                self._leave(self._union(free_vars(value)))
                return _NONE
            case _:
                return self._use(value)

    def _function_call(self, callee: Lifetimes, operands: Sequence[Roots]) -> Roots:
        result = _NONE
        for number, roots in enumerate(operands):
            if number in callee.kept:
                self._leave(roots)
            if number in callee.returned:
                result |= roots
        return result

    def _use(self, expr: Expr) -> Roots:
        """The tensors that a leaf, or a tuple of leaves, may alias."""
        match expr:
            case Var():
                roots = self._roots.get(expr, _NONE)
            case Tuple(fields=fields):
                return self._union(fields)
            case TupleGetItem(tuple_value=inner):
                return self._use(inner)
            case SeqExpr():
                return self._sequence(expr)
            case _:
                return _NONE
        self._touch(roots)
        return roots

    def _union(self, exprs: Sequence[Expr]) -> Roots:
        return _NONE.union(*map(self._use, exprs))

    # --- tensors ----------------------------------------------------------------------

    @property
    def _now(self) -> int:
        return max(0, len(self._lifetimes.steps) - 1)

    def _step(self, title: str) -> None:
        self._lifetimes.steps.append(title)

    def _touch(self, roots: Roots) -> None:
        for root in roots:
            tensor = self._lifetimes.tensors.get(root)
            if tensor is not None:
                tensor.begin = self._now if tensor.end < 0 else tensor.begin
                tensor.end = self._now

    def _leave(self, roots: Roots) -> None:
        for root in roots:
            if root in self._params:
                self._lifetimes.kept.add(self._params[root])
            else:
                self._lifetimes.tensors[root].leaves = True


def _holds_nothing(info: StructInfo) -> bool:
    """Whether a value of this kind cannot refer to a tensor."""
    if isinstance(info, TupleStructInfo):
        return all(map(_holds_nothing, info.fields))
    return isinstance(info, ShapeStructInfo | PrimStructInfo)


def _title(value: Expr) -> str:
    match value:
        case Call(op=Op(), args=[ExternFunc(name=name), *_]):
            return name
        case Call(op=Op(name=name) | GlobalVar(name=name)):
            return name
        case Call():
            return "closure"
        case _:
            return "value"
