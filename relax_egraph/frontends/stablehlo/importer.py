"""The importer: converts a StableHLO module to a module of ours."""

from collections.abc import Mapping, Sequence

from jaxlib.mlir import ir

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.names import identifier
from relax_egraph.frontends.building.results import emit_results, module_of
from relax_egraph.frontends.stablehlo import operators as operators
from relax_egraph.frontends.stablehlo import tensors
from relax_egraph.frontends.stablehlo.graph import inlined
from relax_egraph.frontends.stablehlo.program import Learned, Program
from relax_egraph.frontends.stablehlo.reading import decompose, walk
from relax_egraph.frontends.stablehlo.registry import converter_of
from relax_egraph.frontends.stablehlo.values import Poisoned, Scope, Value
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.names import unused
from relax_egraph.ir.struct_info import tensor
from relax_egraph.passes.dead_code import remove_all_unused


def import_module(
    module: ir.Module,
    names: Sequence[str] | None = None,
    shapes: Sequence[Sequence[Dim]] | None = None,
) -> IRModule:
    """See `relax_egraph.from_stablehlo`; `names` and `shapes` are those of the parameters."""
    undecomposed = [o for o in walk(module.operation) if o.name.startswith("chlo.")]
    if any(converter_of(o.name) is None for o in undecomposed):
        decompose(module)
    functions = {
        view.attributes["sym_name"].value: view.operation
        for view in module.body.operations
        if view.operation.name == "func.func"
    }
    main = functions.get("main") or next(iter(functions.values()), None)
    if main is None:
        raise ModelError("the module has no function")
    equal: dict[str, Dim] = {}
    while True:
        program = Program(functions, learning=shapes is None)
        try:
            return _converted(main, program, _parameters(main, program, names, shapes, equal))
        except Learned as fact:
            equal[fact.symbol] = fact.dim


def _parameters(
    main: ir.Operation,
    program: Program,
    names: Sequence[str] | None,
    shapes: Sequence[Sequence[Dim]] | None,
    equal: Mapping[str, Dim],
) -> list[Var]:
    """The parameters of `main`, with sizes that are known to be `equal`."""
    if not main.regions[0].blocks:
        raise ModelError("the function main has no body")
    taken, params, bound = set[str](), list[Var](), _alone(shapes or ())
    for place, argument in enumerate(main.regions[0].blocks[0].arguments):
        given = names[place] if names is not None else _name(argument, place)
        name = unused(identifier(given), taken)
        try:
            dtype = tensors.dtype_of(argument.type)
        except ModelError as refusal:
            raise ModelError(f"input {name!r}: {refusal}") from None
        extents: list[Dim] = []
        for axis, extent in enumerate(tensors.shape_of(argument.type)):
            size = extent if shapes is None else shapes[place][axis]
            if size is None or not dims.symbols(size) <= bound:
                symbol = program.fresh(f"{name}_{axis}")
                if size is not None and _is_positive(size):
                    program.positive.add(dims.text(symbol))
                size = _learned(symbol, equal)
            extents.append(size)
        params.append(Var(name, tensor(tuple(extents), dtype)))
    return params


def _is_positive(size: Dim) -> bool:
    """Whether `size` is 1 or more; the symbols of jax are, as its programs assert."""
    ones: dict[str, Dim] = {s: dims.add(dims.symbol(s), 1) for s in dims.symbols(size)}
    return dims.prove_ge(dims.substitute(size, ones), 1)


def _alone(shapes: Sequence[Sequence[Dim]]) -> set[str]:
    """The symbols that are alone a size; of others, such as ``b`` of ``2·b``, no call tells."""
    sizes = [size for shape in shapes for size in shape if not isinstance(size, int)]
    return {dims.text(size) for size in sizes if size.is_Symbol}


def _name(argument: ir.Value, place: int) -> str:
    """The name of an argument: that of its location, if it has one."""
    location = argument.location
    name = location.name_str if isinstance(location, ir.NameLoc) else ""
    return name if name.isidentifier() else f"arg{place}"


def _learned(size: Dim, equal: Mapping[str, Dim]) -> Dim:
    while dims.symbols(size) & equal.keys():
        size = dims.substitute(size, equal)
    return size


def _converted(main: ir.Operation, program: Program, params: Sequence[Var]) -> IRModule:
    bb = BlockBuilder(fitting=True)
    scope = Scope(bb)
    with bb.function("main", params):
        results = list[Expr]()
        try:
            values = inlined(main, [Value(p) for p in params], program, scope)
            results = [scope.expr(value) for value in values]
        except Poisoned:
            pass
        program.check()
        emit_results(bb, results)
    return remove_all_unused(module_of(bb))
