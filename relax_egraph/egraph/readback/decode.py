"""Decoding of the chosen program as bindings of a dataflow block.

A kernel of one operator becomes that operator's call; a kernel of several becomes a call of a
fused function: ``cls.fused_matmul_add_relu(x, w, b)``.  The broadcasts that `encode` made
explicit are dropped where the operator broadcasts by itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from relax_egraph.egraph.binders import first_casts, mentioned
from relax_egraph.egraph.encoding.encode import reads_of
from relax_egraph.egraph.node import CALLS, LEAF, OPAQUE, SCALAR, TUPLE_GET, WHOLE, Child, Node
from relax_egraph.egraph.readback.fused import FusedFunctions, broadcasts_to
from relax_egraph.egraph.view import Choice, ClassId, ENode, Program, View
from relax_egraph.errors import ExtractionError
from relax_egraph.ir.dtypes import scalar
from relax_egraph.ir.expr import (
    Binding,
    Call,
    Constant,
    DataflowVar,
    Expr,
    ExternFunc,
    GlobalVar,
    MatchCast,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.kernel import Kernel
from relax_egraph.ir.names import unused
from relax_egraph.ir.op import OPS, infer
from relax_egraph.ir.operators import named
from relax_egraph.ir.shape_variables import with_shapes
from relax_egraph.ir.struct_info import ShapeStructInfo, StructInfo, TupleStructInfo

BROADCAST = "broadcast_to"


def decode(
    view: View,
    program: Program,
    outputs: Sequence[tuple[Var, ClassId]],
    names: Mapping[ClassId, str],
    fused: FusedFunctions,
    *,
    taken: set[str] | None = None,
    binders: Mapping[str, MatchCast] | None = None,
    values: dict[ClassId, Expr] | None = None,
) -> tuple[Binding, ...]:
    """The bindings of `program`: they compute `outputs` and run every check among the roots.

    `outputs` are bound to their own variables.  Other values get their name from `names`, made
    unique by a number; `taken` has the names in use, and gets the new ones.  `values` gets the
    expression for each class.  A binding that mentions a symbol comes after the symbol's binder, if
    that is an opaque binding of the view.  Raises `ExtractionError` if there is no such order.
    """
    used = set[str]() if taken is None else taken
    decoder = _Decoder(view, program, outputs, names, fused, used, {} if values is None else values)
    decoder.order_symbols(first_casts(view) if binders is None else binders)
    for root in view.roots:
        decoder.make(root)
    for var, class_id in outputs:
        decoder.bind_output(var, class_id)
    return tuple(decoder.bindings)


class _Decoder:
    """The bindings so far, and the expression for the value of each class."""

    def __init__(
        self,
        view: View,
        program: Program,
        outputs: Sequence[tuple[Var, ClassId]],
        names: Mapping[ClassId, str],
        fused: FusedFunctions,
        taken: set[str],
        values: dict[ClassId, Expr],
    ) -> None:
        self.bindings: list[Binding] = []
        self._view = view
        self._fused = fused
        self._names = names
        self._value = values
        self._choice: dict[ClassId, Choice] = {o: c for c in program for o in c.outputs}
        self._binds: dict[str, ClassId] = {}
        self._taken = taken
        self._taken.update(v.name for v, _ in outputs)
        self._taken.update(leaf.name for leaf in view.leaves if isinstance(leaf, Var))
        self._output: dict[ClassId, Var] = {}
        for var, class_id in outputs:
            self._output.setdefault(class_id, var)
        self._bound: set[Var] = set()

    def order_symbols(self, binders: Mapping[str, MatchCast]) -> None:
        """Order classes that mention a symbol after its binder."""
        for class_id, choice in self._choice.items():
            if isinstance(choice.how, Node) and choice.how.op == OPAQUE:
                bound = self._view.opaque[choice.how.key]
                self._binds |= {n: class_id for n, cast in binders.items() if cast is bound}

    def make(self, root: ClassId) -> None:
        """Emit all that `root` needs, each once, operands before their use."""
        stack: list[tuple[ClassId, bool]] = [(root, False)]
        begun: set[ClassId] = set()
        while stack:
            class_id, ready = stack.pop()
            if class_id in self._value:
                continue
            if ready:
                begun.discard(class_id)
                self._emit(class_id)
            elif class_id in begun:
                raise ExtractionError("the chosen program needs a value before it can be made")
            else:
                begun.add(class_id)
                stack.append((class_id, True))
                stack.extend((need, False) for need in reversed(self._needs(class_id)))

    def bind_output(self, var: Var, class_id: ClassId) -> None:
        """Bind `var` to the value of `class_id`, unless it is bound to it already."""
        if var not in self._bound:
            self.bindings.append(VarBinding(var, self._value[class_id]))
            self._bound.add(var)

    def _needs(self, class_id: ClassId) -> list[ClassId]:
        choice = self._choice[class_id]
        inputs = [self._bare(c) for c in choice.inputs]
        if not self._binds:
            return inputs
        symbols = sorted(mentioned(choice, self._view))
        return [*inputs, *(self._binds[s] for s in symbols if s in self._binds)]

    def _bare(self, class_id: ClassId) -> ClassId:
        """The operand below the broadcasts of `class_id`, if it is chosen as a broadcast node."""
        how = self._choice[class_id].how
        if isinstance(how, Node) and how.op == BROADCAST:
            return self._bare(how.operands[0])
        return class_id

    def _emit(self, class_id: ClassId) -> None:
        choice = self._choice[class_id]
        how = choice.how
        if isinstance(how, Kernel):
            self._emit_kernel(choice, how)
        elif how.op == LEAF:
            self._value[class_id] = self._view.leaves[how.key]
        elif how.op == SCALAR:
            self._value[class_id] = Constant(scalar(how.scalar, how.dtype))
        elif how.op == OPAQUE:
            self._emit_opaque(class_id, how)
        elif how.op == WHOLE:
            self._value[class_id] = self._full(how.operands[0])
        elif how.op in CALLS:
            self._value[class_id] = self._bind(class_id, self._call_below(how))
        elif how.op == TUPLE_GET:
            ((_, index),) = how.attrs
            part = TupleGetItem(self._full(how.operands[0]), cast(int, index))
            self._value[class_id] = self._bind(class_id, part)
        else:
            self._value[class_id] = self._bind(class_id, self._call(class_id, how))

    def _emit_opaque(self, class_id: ClassId, node: ENode) -> None:
        binding = self._view.opaque[node.key]
        reads = [(r, self._full(c)) for r, c in zip(reads_of(binding), node.operands, strict=True)]
        value = _replaced(binding.value, {id(r): new for r, new in reads})
        now = {r: new for r, new in reads if isinstance(r, Var)}
        info = with_shapes(binding.var.struct_info, now)
        if self._output.get(class_id) in (None, binding.var):
            var = self._var(class_id, info, binding.var.name)
        else:  # messages name the variable that the program has
            var = DataflowVar(unused(binding.var.name, self._taken), info)
        if isinstance(binding, MatchCast):
            info = with_shapes(binding.struct_info, now)
            self.bindings.append(replace(binding, var=var, value=value, struct_info=info))
            self._value[class_id] = var
            return
        if isinstance(value, Call):
            sinfo_args = tuple(with_shapes(i, now) for i in value.sinfo_args)
            known = with_shapes(value.struct_info, now)
            value = replace(value, sinfo_args=sinfo_args, struct_info=known)
        self.bindings.append(VarBinding(var, value))
        self._value[class_id] = var

    def _call(self, class_id: ClassId, node: ENode) -> Call:
        """The operator's call; without broadcasts of operands if the operator broadcasts itself."""
        info = self._view.classes[class_id].struct_info
        op, attrs = named(node.op), dict(node.attrs)
        if op.elementwise:
            bare = tuple(self._value[self._bare(c)] for c in node.operands)
            if broadcasts_to(op, bare, attrs, info):
                return Call(op, bare, attrs, struct_info=info)
        arguments = [self._argument(child) for child in node.children]
        while arguments and arguments[-1] is None:
            arguments.pop()
        args = tuple(a for a in arguments if a is not None)
        call = Call(op, args, attrs, struct_info=info)
        is_tuple = self._view.classes[class_id].sort == "tuple"
        return replace(call, struct_info=infer(call)) if is_tuple else call

    def _call_below(self, node: ENode) -> Call:
        """The call of a function below the graph."""
        operands = tuple(map(self._full, node.operands))
        callee = GlobalVar(node.callee) if node.op == "call_tir" else ExternFunc(node.callee)
        args = operands if node.op == "call_pure_packed" else (Tuple(operands),)
        info = node.call_info
        return Call(OPS[node.op], (callee, *args), {}, (info,), info)

    def _argument(self, child: Child[ClassId]) -> Expr | None:
        match child:
            case int():
                return self._full(child)
            case tuple():
                return Tuple(tuple(map(self._full, child)))
            case ShapeStructInfo(values=values):
                return ShapeExpr(values or ())
            case _:
                return child

    def _full(self, class_id: ClassId) -> Expr:
        """The value of `class_id`; emits a broadcast that has been skipped so far."""
        if class_id not in self._value:
            self._emit(class_id)
        return self._value[class_id]

    def _emit_kernel(self, choice: Choice, kernel: Kernel) -> None:
        pairs = zip(choice.inputs, kernel.inputs, strict=True)
        inputs = [c for c, source in pairs if source.scalar is None]
        args = tuple(map(self._full, inputs))
        function = self._fused.function(kernel, [self._parameter(c) for c in inputs])
        bindings = [b for block in function.body.blocks for b in block.bindings]
        if len(bindings) == 1:
            inside = dict(zip(map(id, function.params), args, strict=False))
            call = _replaced(bindings[0].value, inside)
            self._value[choice.outputs[0]] = self._bind(choice.outputs[0], call)
            return
        infos = [p.struct_info for p in function.params[len(args) :]]
        shapes = [ShapeExpr(i.values or ()) for i in infos if isinstance(i, ShapeStructInfo)]
        name, result = self._fused.name(kernel), function.ret_struct_info
        call = Call(name, (*args, *shapes), struct_info=result)
        if not isinstance(result, TupleStructInfo):
            self._value[choice.outputs[0]] = self._bind(choice.outputs[0], call)
            return
        together = DataflowVar(unused("lv", self._taken), result)
        self.bindings.append(VarBinding(together, call))
        for index, output in enumerate(choice.outputs):
            self._value[output] = self._bind(output, TupleGetItem(together, index))

    def _parameter(self, class_id: ClassId) -> str:
        """A name for the parameter that takes the value of `class_id`; a constant is a weight."""
        value = self._value[class_id]
        is_const = self._view.classes[class_id].is_const
        return value.name if isinstance(value, Var) and not is_const else "w"

    def _bind(self, class_id: ClassId, value: Expr) -> Var:
        var = self._var(class_id, value.struct_info, self._names.get(class_id, "lv"))
        self.bindings.append(VarBinding(var, value))
        return var

    def _var(self, class_id: ClassId, info: StructInfo, name: str) -> Var:
        if class_id in self._output:
            self._bound.add(self._output[class_id])
            return self._output[class_id]
        return DataflowVar(unused(name, self._taken), info)


def _replaced(value: Expr, values: Mapping[int, Expr]) -> Expr:
    """`value` with the replacements `values` for variables and constants, by their id."""
    match value:
        case Var() | Constant():
            return values.get(id(value), value)
        case Tuple(fields=fields):
            return Tuple(tuple(_replaced(f, values) for f in fields))
        case TupleGetItem(tuple_value=inner, index=index):
            return TupleGetItem(_replaced(inner, values), index)
        case Call(args=args):
            return replace(value, args=tuple(_replaced(a, values) for a in args))
        case _:
            return value
