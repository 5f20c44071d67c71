"""`LowerToTensorIR`: operators become calls of loop functions, by a table."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from relax_egraph import BlockBuilder, IRModule, te
from relax_egraph.ir.dataflow_mutator import DataflowMutator
from relax_egraph.ir.expr import Attr, Call, Expr
from relax_egraph.ir.op import OPS
from relax_egraph.passes import module_pass

Lower: TypeAlias = Callable[[BlockBuilder, Call], Expr]


class LowerToTensorIR(DataflowMutator):
    """The listing; its ``transform`` is the inherited one."""

    def __init__(self, module: IRModule, op_map: Mapping[str, Lower]) -> None:
        super().__init__(module)
        self.builder = self.te_builder = BlockBuilder(module)
        self.op_map = {OPS[k]: v for k, v in op_map.items()}

    def visit_call(self, call: Call) -> Expr:
        visited = super().visit_call(call)
        if isinstance(visited, Call) and visited.op in self.op_map:
            return self.op_map[visited.op](self.te_builder, visited)
        return visited


# The document's are topi.nn.matmul, topi.add and topi.nn.relu.


def matmul(x: te.Tensor, w: te.Tensor, **_: Attr) -> te.Tensor:
    k = te.reduce_axis(x.shape[1])
    shape = (x.shape[0], w.shape[1])
    return te.compute(shape, lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), "T_matmul_NN")


def add(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    return te.compute(a.shape, lambda i, j: a[i, j] + b[j], "T_add")


def relu(x: te.Tensor) -> te.Tensor:
    return te.compute(x.shape, lambda i, j: te.maximum(x[i, j], 0.0), "compute")


def map_dense(bb: BlockBuilder, call: Call) -> Expr:
    x, w = call.args
    return bb.call_te(matmul, x, w)


def map_add(bb: BlockBuilder, call: Call) -> Expr:
    a, b = call.args
    return bb.call_te(add, a, b)


def map_relu(bb: BlockBuilder, call: Call) -> Expr:
    return bb.call_te(relu, call.args[0])


OP_MAP: Mapping[str, Lower] = {"matmul": map_dense, "add": map_add, "nn.relu": map_relu}


@module_pass(opt_level=0, name="LowerToTensorIR")
def lower_to_tensor_ir(module: IRModule) -> IRModule:
    """The wrapper for `LowerToTensorIR`."""
    return LowerToTensorIR(module, OP_MAP).transform()
