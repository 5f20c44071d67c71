"""Inlining of private functions, where a call costs more than the planning of a copy."""

from collections.abc import Iterator

from relax_egraph.extract import Pricing
from relax_egraph.ir.expr import Binding, Function
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.refusals import Refusals
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from relax_egraph.ir.walk import bindings_of, sequences_of
from relax_egraph.passes.dead_code import reachable
from relax_egraph.passes.infra import Pass, module_pass
from relax_egraph.passes.inline_functions import inlined, mentions, with_refusing_calls
from relax_egraph.passes.refine_shapes import refine_parameters

RUNS = 100_000
"""The runs of a program among which the seconds of its planning are shared."""

PLANNING = 5e-4
"""Seconds to plan, lower and link one more binding."""


def inline_by_price(pricing: Pricing) -> Pass:
    """A pass that inlines each private function whose calls cost more than its copies.

    A call costs a launch, and a result that is stored and read again, where a kernel might keep it.
    Each copy but the first costs the planning of its bindings, shared among all runs.  Functions
    that call themselves stay, and so do calls that may fail, unless their copies cannot: messages
    name the function.
    """

    @module_pass(name="inline_by_price")
    def inline(module: IRModule) -> IRModule:
        private = [name for name, f in module.relax_functions() if f.attrs.get("private")]
        if not private:
            return module
        uses = mentions(module)

        def pays(name: str) -> bool:
            copies = (uses[name] - 1) * planning(module, name)
            return copies < uses[name] * calling(module, name, pricing)

        cheap = set(filter(pays, private))
        refusing = with_refusing_calls(module, cheap)
        proven = {name for name in refusing if copies_never_refuse(module, name)}
        return inlined(module, cheap - refusing | proven)

    return inline


def copies_never_refuse(module: IRModule, name: str) -> bool:
    """Whether the function `name`, whose calls may fail, cannot fail for its actual arguments."""
    copied = refine_parameters(inlined(module, [name]))
    refusals = Refusals(copied)
    for caller, function in copied.relax_functions():
        if caller != name:
            before = {b.var.name for b in _bindings(module[caller])}
            copies = (b for b in _bindings(function) if b.var.name not in before)
            if any(map(refusals.binding, copies)):
                return False
    return True


def planning(module: IRModule, name: str) -> float:
    """Seconds for each run to plan a copy of the function `name`, with all that it calls."""
    names = reachable(module.functions, [name])
    bindings = (len(_bindings(f)) for n, f in module.relax_functions() if n in names)
    return PLANNING * sum(bindings) / RUNS


def calling(module: IRModule, name: str, pricing: Pricing) -> float:
    """Seconds to call the function `name`: to start it, and to store and read its result."""
    function = module[name]
    assert isinstance(function, Function)
    results = filter(pricing.known, _tensors(function.ret_struct_info))
    return pricing.launch + 2 * sum(map(pricing.reading, results))


def _bindings(function: BaseFunc) -> list[Binding]:
    """The bindings in `function`, in its branches and local functions too."""
    assert isinstance(function, Function)
    return [b for seq in sequences_of(function) for b in bindings_of(seq)]


def _tensors(info: StructInfo) -> Iterator[TensorStructInfo]:
    """The tensors in a value of struct info `info`."""
    if isinstance(info, TensorStructInfo):
        yield info
    elif isinstance(info, TupleStructInfo):
        for field in info.fields:
            yield from _tensors(field)
