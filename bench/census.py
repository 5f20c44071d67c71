"""Counts of the operators and kernels that a module runs."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from relax_egraph.ir.expr import Call, Expr, Function, GlobalVar, VarBinding
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.walk import bindings_of

FREE = frozenset({"reshape", "flatten", "expand_dims", "squeeze", "shape_of"})
"""Operators that give a tensor a new shape, or read its shape: they move no data."""


@dataclass(frozen=True, slots=True)
class Census:
    """The number of runs of each operator of `main`, and of each kernel, by its function's name.

    A single operator is a kernel under its own name, unless it is `FREE`.
    """

    operators: Counter[str]
    kernels: Counter[str]

    def per_layer(self, shallower: "Census", layers: int) -> "Census":
        """The share of each of the `layers` that this program has more than `shallower`.

        It is rounded up, so that parts of only some layers are visible.
        """
        return Census(
            _shared(self.operators, shallower.operators, layers),
            _shared(self.kernels, shallower.kernels, layers),
        )


def census(module: IRModule) -> Census:
    """The census of the function ``main``."""
    operators: Counter[str] = Counter()
    kernels: Counter[str] = Counter()
    for callee in _called(module["main"]):
        match callee:
            case Op(name=name):
                operators[name] += 1
                kernels[name] += name not in FREE
            case GlobalVar(name=name):
                operators.update(c.name for c in _called(module[name]) if isinstance(c, Op))
                kernels[name] += 1
            case _:
                kernels["packed function"] += 1
    return Census(operators, +kernels)


def _called(function: object) -> Iterator[Expr | Op]:
    """The callees of the bindings of `function`; none for loop functions."""
    if isinstance(function, Function):
        for binding in bindings_of(function.body):
            if isinstance(binding, VarBinding) and isinstance(binding.value, Call):
                yield binding.value.op


def _shared(deep: Counter[str], shallow: Counter[str], layers: int) -> Counter[str]:
    more = deep - shallow
    return Counter({name: -(-count // layers) for name, count in more.items()})
