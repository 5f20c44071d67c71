"""Tensor expressions: what users write loops in, without loops.

A = te.placeholder((n, 64), "float32", name="A")
k = te.reduce_axis(64)
B = te.compute((n,), lambda i: te.sum(te.exp(A[i, k]), axis=k), name="B")
f = te.create_prim_func(A, B)
"""

from relax_egraph.tir.block_builder import te_tensor as te_tensor
from relax_egraph.tir.call_te import call_te as call_te
from relax_egraph.tir.create_prim_func import create_prim_func as create_prim_func
from relax_egraph.tir.scalar import abs as abs
from relax_egraph.tir.scalar import cast as cast
from relax_egraph.tir.scalar import const as const
from relax_egraph.tir.scalar import equal as equal
from relax_egraph.tir.scalar import erf as erf
from relax_egraph.tir.scalar import exp as exp
from relax_egraph.tir.scalar import fma as fma
from relax_egraph.tir.scalar import log as log
from relax_egraph.tir.scalar import maximum as maximum
from relax_egraph.tir.scalar import minimum as minimum
from relax_egraph.tir.scalar import not_equal as not_equal
from relax_egraph.tir.scalar import pow as pow
from relax_egraph.tir.scalar import rsqrt as rsqrt
from relax_egraph.tir.scalar import select as select
from relax_egraph.tir.scalar import sigmoid as sigmoid
from relax_egraph.tir.scalar import sqrt as sqrt
from relax_egraph.tir.scalar import tanh as tanh
from relax_egraph.tir.tensor import ReduceAxis as ReduceAxis
from relax_egraph.tir.tensor import Tensor as Tensor
from relax_egraph.tir.tensor import compute as compute
from relax_egraph.tir.tensor import max as max
from relax_egraph.tir.tensor import min as min
from relax_egraph.tir.tensor import placeholder as placeholder
from relax_egraph.tir.tensor import reduce_axis as reduce_axis
from relax_egraph.tir.tensor import sum as sum
