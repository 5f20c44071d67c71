"""An operator of one's own: its definition, a rule on it, and one kernel with its neighbours.

Run from the top of the repository: ``python -m examples.own_operator``.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

import relax_egraph as rx
from relax_egraph import te
from relax_egraph.ir.ops.broadcast import floating
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo
from relax_egraph.tir.expr import TirExpr
from relax_egraph.tir.tensor import Tensor

Array = npt.NDArray[Any]


def hardswish(x: Array) -> Array:
    """The meaning, in numpy."""
    wide = x.astype(np.float64)
    return (wide * np.clip(wide + 3, 0, 6) / 6).astype(x.dtype)


def hardswish_loops(x: Tensor) -> Tensor:
    """The loops: each element of the result from the element of the operand."""

    def element(*i: Any) -> TirExpr:
        return x[i] * te.minimum(te.maximum(x[i] + 3, 0), 6) * (1 / 6)

    return te.compute(x.shape, element, "hardswish")


@rx.operator("my.hardswish", numpy=hardswish, te=hardswish_loops, work=5, elementwise=True)
def my_hardswish(x: TensorStructInfo) -> StructInfo:
    """``out = x · min(max(x + 3, 0), 6) / 6``."""
    return floating("my.hardswish", x)


RULES = """
; x · relu6(x + 3) / 6 = hardswish(x)
; float: reassociates
(rewrite (R.divide (R.multiply x (R.nn.relu6 (R.add x three))) six) (R.my.hardswish x)
  :when ((= 3.0 (const-scalar three)) (= 6.0 (const-scalar six)))
  :name "hardswish-written-out")
"""

PROGRAM = """
@R.function
def main(x: R.Tensor(("n", 64), "float32"), y: R.Tensor(("n", 64), "float32")):
    with R.dataflow():
        a = R.divide(R.multiply(x, R.nn.relu6(R.add(x, R.const(3.0)))), R.const(6.0))
        b = R.add(a, y)
        R.output(b)
    return b
"""


def main() -> None:
    """Print the verdict on the rule, the optimized program, and how far it is from numpy."""
    with rx.operators(my_hardswish):
        for verdict in rx.rules.check(RULES, processes=1):
            print(verdict)
        best = rx.optimize(rx.parse(PROGRAM), rules=[RULES])
    print(best)
    x, y = np.random.default_rng(0).standard_normal((2, 8, 64)).astype(np.float32)
    result = rx.VirtualMachine(rx.build(best))["main"](x, y)
    print(f"off by at most {np.abs(result - (hardswish(x) + y)).max():.1e}")


if __name__ == "__main__":
    main()
