"""Converts the operations of a block to bindings of a function."""

from collections.abc import Sequence

from jaxlib.mlir import ir

from relax_egraph.errors import ModelError, RelaxEgraphError
from relax_egraph.frontends.building.builder import info_of
from relax_egraph.frontends.stablehlo import tensors
from relax_egraph.frontends.stablehlo.folding import folded, selected
from relax_egraph.frontends.stablehlo.node import Node
from relax_egraph.frontends.stablehlo.program import Learned, Program
from relax_egraph.frontends.stablehlo.registry import converter_of
from relax_egraph.frontends.stablehlo.values import Poisoned, Scope, Value, of_expr
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr
from relax_egraph.ir.struct_info import tensor

_ENDS = ("func.return", "stablehlo.return", "sdy.return")
_CALLS = ("func.call", "stablehlo.composite")


def convert_block(block: ir.Block, program: Program, scope: Scope) -> list[Value]:
    """Convert `block`, whose arguments have values in `scope`; returns what it returns.

    Operations that fail become problems of `program`; raises `Poisoned` if a result needs one.
    """
    for view in block.operations:
        operation = view.operation
        if operation.name in _ENDS:
            return [scope[value] for value in operation.operands]
        try:
            program.count()
            results = convert_operation(operation, program, scope)
            scope.values.update(zip(operation.results, results, strict=True))
        except Poisoned:
            continue
        except RelaxEgraphError as refusal:
            program.refuse(operation, str(refusal))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            program.refuse(operation, f"its attributes do not fit together: {error}")
    raise ModelError("a block has no end")


def convert_operation(operation: ir.Operation, program: Program, scope: Scope) -> Sequence[Value]:
    """The results of `operation`."""
    operands = tuple(scope[value] for value in operation.operands)
    name = str(operation.name)
    if (same := selected(operation, operands)) is not None:
        return [same]
    elements = folded(operation, [o.elements for o in operands], program, scope)
    if elements is not None:
        return [Value(None, elements)]
    if name == "stablehlo.custom_call":
        name = f"@{operation.attributes['call_target_name'].value}"
    if name == "stablehlo.composite":
        whole = str(operation.attributes["name"].value)
        name = whole if converter_of(whole) else name
    if name in _CALLS:
        attribute = "callee" if name == "func.call" else "decomposition"
        callee = program.function(operation.attributes[attribute].value)
        return inlined(callee, operands, program, scope)
    converter = converter_of(name)
    if converter is None:
        what = f"custom call {name[1:]}" if name.startswith("@") else "operation"
        raise ModelError(f"the {what} is not supported")
    kinds = [result.type for result in operation.results]
    for kind in kinds:
        tensors.dtype_of(kind)
    converted = converter(Node(name, operation, operands, scope, program))
    many = [converted] if isinstance(converted, Expr | Value) else list(converted)
    if len(many) != len(kinds):
        raise ModelError(f"it has {len(kinds)} results, of which {len(many)} are converted")
    return [
        value if isinstance(value, Value) else _declared(value, kind, program, scope)
        for value, kind in zip(many, kinds, strict=True)
    ]


def inlined(
    callee: ir.Operation, operands: Sequence[Value], program: Program, scope: Scope
) -> list[Value]:
    """The results of the function `callee` for `operands`: its operations, where it is called."""
    if not callee.regions[0].blocks:
        raise ModelError("the function that it calls has no body")
    block = callee.regions[0].blocks[0]
    if program.learning:
        _learn_names(callee, operands)
    inner = scope.called()
    inner.values.update(zip(block.arguments, operands, strict=True))
    return convert_block(block, program, inner)


def _learn_names(callee: ir.Operation, operands: Sequence[Value]) -> None:
    """Raise `Learned` if a parameter of `callee` has a name for what is a size of ours."""
    if "arg_attrs" not in callee.attributes:
        return
    for attributes, operand in zip(callee.attributes["arg_attrs"], operands, strict=True):
        if "jax.global_constant" not in attributes or operand.elements is None:
            continue
        name = attributes["jax.global_constant"].value
        (size,) = operand.elements.dims
        if not isinstance(size, int) and size.is_Symbol and dims.text(size) != name:
            raise Learned(dims.text(size), dims.symbol(name))


def _declared(made: Expr, kind: ir.Type, program: Program, scope: Scope) -> Value:
    """`made`, checked to be what the program declares of it."""
    info, dtype, shape = info_of(made), tensors.dtype_of(kind), tensors.shape_of(kind)
    if info.dtype != dtype:
        raise ModelError(f"its result is of {info.dtype}, where the program has {dtype}")
    if scope.lifted:
        if shape:
            raise ModelError("a region that is applied element by element has tensors")
        return of_expr(made)
    if info.dims is None:
        extents = tuple(program.fresh("extent") if n is None else n for n in shape)
        return Value(scope.bb.emit_match_cast(made, tensor(extents, dtype)))
    if len(info.dims) != len(shape):
        raise ModelError(f"its result is a {info}, where the program has {kind}")
    extents = tuple(_extent(own, n) for own, n in zip(info.dims, shape, strict=True))
    if extents == info.dims:
        return of_expr(made)
    return Value(scope.bb.emit_match_cast(made, tensor(extents, dtype)))


def _extent(own: Dim, declared: int | None) -> Dim:
    if declared is None:
        return own
    if dims.distinct(own, declared):
        text = dims.text(own)
        raise ModelError(f"an extent of its result is {text}, where the program has {declared}")
    return declared


def applied(
    block: ir.Block, operands: Sequence[Expr], program: Program, scope: Scope
) -> list[Expr]:
    """The results of `block`, a function of scalars, for each element of `operands`."""
    inner = scope.nested(lifted=True)
    inner.values.update(zip(block.arguments, (Value(o) for o in operands), strict=True))
    return [inner.expr(value) for value in convert_block(block, program, inner)]
