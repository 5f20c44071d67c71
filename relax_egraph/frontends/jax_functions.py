"""Modules as functions of jax, which jitted functions may call."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import relax_egraph as rx
from relax_egraph.errors import IllTyped
from relax_egraph.ir.agreement import bind, substituted
from relax_egraph.ir.expr import Function
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo, tensor


def jax_call(module: "rx.IRModule") -> Callable[..., Any]:
    """See `relax_egraph.jax_call`."""
    signature = module["main"]
    if not isinstance(signature, Function):
        raise IllTyped("main is a loop function, needs a function of tensors")
    main = rx.VirtualMachine(rx.build(rx.optimize(module)))["main"]
    declared = [param.struct_info for param in signature.params]

    def run(*arrays: Any) -> Any:
        return main(*map(np.asarray, arrays))

    def called(*arguments: Any) -> Any:
        arrays = [jnp.asarray(argument) for argument in arguments]
        if len(arrays) != len(declared):
            raise IllTyped(f"main takes {len(declared)} arrays, got {len(arrays)}")
        infos = [tensor(array.shape, array.dtype.name) for array in arrays]
        result = substituted(signature.ret_struct_info, bind(declared, infos))
        return jax.pure_callback(run, _spec(result), *arrays, vmap_method="sequential")

    return called


def _spec(info: StructInfo) -> Any:
    """What jax is told of a result."""
    if isinstance(info, TupleStructInfo):
        return tuple(map(_spec, info.fields))
    if not isinstance(info, TensorStructInfo) or info.dims is None or info.dtype is None:
        raise IllTyped(f"a result is {info}, needs a tensor of known shape")
    shape = tuple(extent for extent in info.dims if isinstance(extent, int))
    if len(shape) < len(info.dims):
        raise IllTyped(f"a result is {info}, whose shape only the run decides")
    return jax.ShapeDtypeStruct(shape, np.dtype(info.dtype))
